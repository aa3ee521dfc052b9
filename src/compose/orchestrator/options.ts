import type { Config } from '../../config/schema.ts';
import { fixedReconcileOptions, type ReconcileOptions } from '../../orchestrator/platform/options.ts';
import { callTimeoutMs, listPauseMs } from '../../work/lease-time.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Converts `reconcile:`, `losses:` and `failed_instances:` of berth.yaml, with times in milliseconds. */
export function toReconcileOptions({
  reconcile,
  losses,
  failed_instances: failed,
}: Config): ReconcileOptions {
  const leaseMs = reconcile.lease_s * 1000;
  return {
    ...fixedReconcileOptions,
    leaseMs,
    callTimeoutMs: callTimeoutMs(leaseMs),
    listPauseMs: listPauseMs(leaseMs),
    probeIntervalMs: reconcile.ssh_probe_interval_s * 1000,
    watchIntervalMs: reconcile.watch_interval_s * 1000,
    holdFailedMs: failed.hold_minutes === undefined ? null : failed.hold_minutes * MINUTE_MS,
    holdLostClaimsMs: losses.hold_claims_minutes * MINUTE_MS,
    keepDisksMs: losses.keep_disks_hours * HOUR_MS,
    emptyForMs: reconcile.accept_empty_after_s * 1000,
    orphans: reconcile.orphans,
    orphanGraceMs: reconcile.orphan_grace_s * 1000,
    maxLosses: reconcile.max_losses,
  };
}
