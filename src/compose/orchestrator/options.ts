import type { Config } from '../../config/schema.ts';
import { fixedReconcileOptions, type ReconcileOptions } from '../../orchestrator/platform/options.ts';
import { callTimeoutMs, listPauseMs } from '../../work/lease-time.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Converts `reconcile:`, `losses:` and `failed_instances:` of berth.yaml, with times in milliseconds. */
export function toReconcileOptions({
  reconcile,
  losses,
  failed_instances: failed,
}: Config): ReconcileOptions {
  const leaseMs = reconcile.lease_s * 1000;
  const { share, least, window_s, per_host: perHost } = reconcile.max_losses;
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
    restoreDoubtMs: reconcile.restore_doubt_s * SECOND_MS,
    emptyForMs: reconcile.accept_empty_after_s * SECOND_MS,
    orphans: reconcile.orphans,
    orphanGraceMs: reconcile.orphan_grace_s * 1000,
    suspectShare: reconcile.suspect_share,
    maxLosses: { share, least, windowMs: window_s * 1000, perHost },
  };
}
