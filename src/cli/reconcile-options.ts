import type { Config } from '../config/schema.ts';
import {
  callTimeoutMs,
  fixedReconcileOptions,
  type ReconcileOptions,
} from '../orchestrator/platform/options.ts';

/** What `reconcile:` in berth.yaml says, in milliseconds. */
export function toReconcileOptions({ reconcile }: Config): ReconcileOptions {
  const leaseMs = reconcile.lease_s * 1000;
  const { share, least, window_s } = reconcile.max_losses;
  return {
    ...fixedReconcileOptions,
    leaseMs,
    callTimeoutMs: callTimeoutMs(leaseMs),
    probeIntervalMs: reconcile.ssh_probe_interval_s * 1000,
    watchIntervalMs: reconcile.watch_interval_s * 1000,
    orphans: reconcile.orphans,
    orphanGraceMs: reconcile.orphan_grace_s * 1000,
    suspectShare: reconcile.suspect_share,
    maxLosses: { share, least, windowMs: window_s * 1000 },
  };
}
