import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { readDeployment as showToOperators } from '../operate/views/deployments.ts';
import { resumeDeployment } from './lifecycle.ts';
import {
  caller,
  deploy,
  deployStopped,
  type Market,
  openMarket,
  outcomeOf,
  read,
  stranger,
  withoutRevision,
} from './market.fixture.ts';

const HOUR = 3_600_000;

let market: Market;
beforeEach(async () => {
  market = await openMarket({ startMs: 8_000 });
});
afterEach(() => market.close());

const resume = (by = caller, id = 'dep-1') => outcomeOf(market.clock, resumeDeployment(market.deps, by, id));
const starts = () => market.plain.faults.countOf('startInstance');

async function expectNothingChanged(before: DeploymentRecord): Promise<void> {
  expect(withoutRevision(await read(market))).toEqual(withoutRevision(before));
  expect(market.clock.pendingTimers).toBe(0);
}

it('answers running once the provider shows it, with the same address [resume-answers-running]', async () => {
  await deployStopped(market);
  expect(await resume()).toMatchObject({
    status: 'running',
    pausedAt: null,
    stoppedHourlyRate: 0.5,
    ipAddress: '192.0.2.1',
    hourlyRate: 2,
    sshCommand: 'ssh -p 22 ubuntu@192.0.2.1',
  });
  const record = await read(market);
  expect(record).toMatchObject({ status: 'running', action: null });
  expect(record.pausedMs).toBeGreaterThanOrEqual(HOUR);
  expect(starts()).toBe(1);
});

describe('a start is refused before the provider is asked', () => {
  it.each(['running', 'terminated', 'failed'] as const)(
    'for one that is %s [resume-refused-early]',
    async (status) => {
      const before = await deploy(market, { status });
      expect(await resume()).toMatchObject({
        code: 'INVALID_STATUS',
        status: 400,
        message: expect.stringContaining(status),
      });
      await expectNothingChanged(before);
    },
  );

  it('where the balance is used up', async () => {
    const before = await deployStopped(market, { teamId: 'team-2' });
    expect(await resume(stranger)).toMatchObject({
      code: 'VALIDATION_ERROR',
      status: 400,
      details: { reason: 'insufficient_balance' },
    });
    await expectNothingChanged(before);
  });

  afterEach(() => expect(starts()).toBe(0));
});

describe('any other 409 of a start is a 503, and it stays stopped as it was [resume-conflict]', () => {
  it.each([
    'capacity_unavailable',
    'resume_unsupported',
    'invalid_state',
    'operation_in_progress',
    'unheard_of',
  ])('%s', async (code) => {
    const before = await deployStopped(market);
    const error = new ProviderError('conflict', 'no', { status: 409, code });
    market.plain.faults.plan = (method) => (method === 'startInstance' ? { error } : 'none');
    expect(await resume()).toMatchObject({ code: 'OUT_OF_STOCK', status: 503 });
    await expectNothingChanged(before);
    expect(starts()).toBe(1);
  });
});

it('a start that finds no capacity leaves all as it was, and a later one starts it at its address [resume-out-of-stock]', async () => {
  const before = await deployStopped(market);
  const { plain } = market;
  plain.options.capacity = 0;
  expect(await resume()).toMatchObject({ code: 'OUT_OF_STOCK', status: 503 });
  await expectNothingChanged(before);
  expect(plain.instances.map(({ status }) => status)).toEqual(['STOPPED']);
  plain.options.capacity = 1;
  expect(await resume()).toMatchObject({ status: 'running', ipAddress: before.ipAddress });
});

it('a start refused for quota is not reported as out of stock: 400 with the reason', async () => {
  const before = await deployStopped(market);
  const error = new ProviderError('conflict', 'no', { status: 409, code: 'quota_exceeded' });
  market.plain.faults.plan = (method) => (method === 'startInstance' ? { error } : 'none');
  expect(await resume()).toMatchObject({ status: 400, details: { reason: 'quota_exceeded' } });
  await expectNothingChanged(before);
});

it('awaits a start whose answer was lost, and asks only once', async () => {
  await deployStopped(market);
  market.plain.faults.plan = (method) => (method === 'startInstance' ? 'commit-then-lose' : 'none');
  expect(await resume()).toMatchObject({ status: 'running' });
  expect(starts()).toBe(1);
});

it('a start that takes longer than a request waits is a 504, and operators see it until it is given up [resume-timeout]', async () => {
  await market.close();
  market = await openMarket({ startMs: 2 * HOUR });
  const warn = vi.spyOn(market.deps.log, 'warn');
  await deployStopped(market);
  expect(await resume()).toMatchObject({ code: 'PROVIDER_SLOW', status: 504 });
  expect(await read(market)).toMatchObject({ status: 'stopped', action: { kind: 'resume', attempt: 1 } });
  expect(await resume()).toMatchObject({ status: 409 });
  expect(starts()).toBe(1);
  const { action } = (await showToOperators(market.deps.store.read, 'dep-1', market.clock.now())) ?? {};
  expect(action).toMatch(/^resume since .+, accepted by the provider$/);
  await market.clock.advance(HOUR / 4);
  expect(await read(market)).toMatchObject({ status: 'stopped', action: null });
  expect(warn.mock.calls).toMatchObject([
    [{ action: 'resume' }, expect.stringContaining('accepted a start')],
  ]);
});
