import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';

/** From `at` on, a deployment or volume costs this much before discounts; `over`: nothing any more. */
export interface Cause {
  at: number;
  state: 'running' | 'stopped' | 'stored' | 'over';
  originalRate: number;
  /** The discount that is locked in, for volumes. */
  locked?: number;
}

/** The change of a deployment's price that a commit makes, if any. `before` undefined: it is new. */
export function causeOfDeployment(
  before: DeploymentRecord | undefined,
  after: DeploymentRecord,
): Cause | undefined {
  if (before === undefined || before.startedAt === null) {
    if (after.startedAt === null) return undefined;
    return { at: after.startedAt, state: 'running', originalRate: after.originalRateMicroUsd };
  }
  if (before.stoppedAt !== null) return undefined;
  if (after.stoppedAt !== null) return { at: after.stoppedAt, state: 'over', originalRate: 0 };
  if (before.status !== 'stopped' && after.status === 'stopped')
    return {
      at: after.pausedAt ?? Number.NaN,
      state: 'stopped',
      originalRate: after.originalStoppedRateMicroUsd ?? Number.NaN,
    };
  if (before.status === 'stopped' && after.status === 'running') {
    const at = (before.pausedAt ?? Number.NaN) + after.pausedMs - before.pausedMs;
    return { at, state: 'running', originalRate: after.originalRateMicroUsd };
  }
  if (before.originalRateMicroUsd === after.originalRateMicroUsd) return undefined;
  return { at: after.observedAt ?? Number.NaN, state: 'running', originalRate: after.originalRateMicroUsd };
}

/** {@link causeOfDeployment}, for a volume. */
export function causeOfVolume(before: VolumeRecord | undefined, after: VolumeRecord): Cause | undefined {
  const rate = { originalRate: after.originalRateMicroUsd, locked: after.discountPercentage };
  if (before === undefined || before.startedAt === null)
    return after.startedAt === null ? undefined : { at: after.startedAt, state: 'stored', ...rate };
  if (before.deletedAt !== null) return undefined;
  if (after.deletedAt !== null) return { at: after.deletedAt, state: 'over', originalRate: 0 };
  return before.sizeGb === after.sizeGb
    ? undefined
    : { at: after.lastPriceUpdateAt, state: 'stored', ...rate };
}
