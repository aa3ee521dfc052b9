import type { Config } from '../../config/schema.ts';
import { defaultReconcileOptions, type ReconcileOptions } from '../../orchestrator/platform/options.ts';
import { callTimeoutMs, listPauseMs } from '../../work/lease-time.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Options of the durable work that differ from the defaults and from berth.yaml. */
export type ReconcileChanges = Partial<Omit<ReconcileOptions, 'callTimeoutMs' | 'listPauseMs'>>;

/** Adds `orphans:`, `losses:` and `failed_instances:` of berth.yaml to the default options. */
export function toReconcileOptions(
  { orphans, losses, failed_instances: { hold_minutes: holdMinutes } }: Config,
  changes: ReconcileChanges = {},
): ReconcileOptions {
  const options = {
    ...defaultReconcileOptions,
    holdFailedMs: holdMinutes === undefined ? null : holdMinutes * MINUTE_MS,
    keepDisksMs: losses.keep_disks_hours * HOUR_MS,
    orphans,
    ...changes,
  };
  const { leaseMs } = options;
  return { ...options, callTimeoutMs: callTimeoutMs(leaseMs), listPauseMs: listPauseMs(leaseMs) };
}
