import { describe, expect, it } from 'vitest';
import { now, runningDeployment } from '../../../test/support/rows/marketplace-rows.ts';
import { deploymentStatuses } from '../contract/deployment.ts';
import { checkTermination } from './terminate.ts';

const MINUTE = 60_000;

describe('a running deployment', () => {
  it.each([
    ['at its first moment', 0, { runtime: 0, timeRemaining: 20, canTerminate: false }],
    ['at 19:59', 20 * MINUTE - 1_000, { runtime: 19, timeRemaining: 1, canTerminate: false }],
    ['a millisecond before', 20 * MINUTE - 1, { runtime: 19, timeRemaining: 1, canTerminate: false }],
    ['at 20:00', 20 * MINUTE, { runtime: 20, timeRemaining: 0, canTerminate: true }],
    ['a day later', 1_440 * MINUTE, { runtime: 1_440, timeRemaining: 0, canTerminate: true }],
  ])('%s of a minimum of 20 minutes [minimum-runtime]', (_, afterMs, expected) => {
    const check = checkTermination(runningDeployment(), 20, now + afterMs);
    expect(check).toMatchObject({ ...expected, minimumRuntime: 20 });
    expect(check.reason !== undefined).toBe(!expected.canTerminate);
  });

  it('counts no time for which it was stopped [minimum-runtime-while-stopped]', () => {
    const record = runningDeployment({ pausedMs: 30 * MINUTE });
    expect(checkTermination(record, 20, now + 40 * MINUTE)).toMatchObject({
      canTerminate: false,
      runtime: 10,
      timeRemaining: 10,
      reason: 'The deployment must run for at least 20 minutes; 10 remain.',
    });
    expect(checkTermination(record, 20, now + 50 * MINUTE)).toMatchObject({
      canTerminate: true,
      runtime: 20,
    });
  });
});

it('stops the minimum-runtime clock of a stopped deployment, and says so [minimum-runtime-frozen]', () => {
  const record = runningDeployment({ status: 'stopped', pausedAt: now + 5 * MINUTE });
  const check = checkTermination(record, 20, now + 600 * MINUTE);
  expect(check).toMatchObject({ canTerminate: false, runtime: 5, timeRemaining: 15 });
  expect(check.reason).toContain('Time stopped does not count');
});

it('lets a stopped deployment be terminated that ran long enough [terminate-stopped-after-minimum]', () => {
  const record = runningDeployment({ status: 'stopped', pausedAt: now + 20 * MINUTE });
  expect(checkTermination(record, 20, now + 21 * MINUTE)).toEqual({
    canTerminate: true,
    runtime: 20,
    timeRemaining: 0,
    minimumRuntime: 20,
  });
});

it.each(deploymentStatuses.filter((status) => status !== 'running' && status !== 'stopped'))(
  'refuses a deployment that is %s, and names the status [terminate-refused-by-status]',
  (status) => {
    const isOver = status !== 'deploying';
    const record = runningDeployment({
      status,
      startedAt: isOver ? now : null,
      stoppedAt: isOver ? now + 60 * MINUTE : null,
    });
    const check = checkTermination(record, 20, now + 90 * MINUTE);
    expect(check).toMatchObject({
      canTerminate: false,
      runtime: isOver ? 60 : 0,
      timeRemaining: isOver ? 0 : 20,
    });
    expect(check.reason).toContain(status);
  },
);
