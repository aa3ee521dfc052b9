import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { pauseDeployment, readRebootStatus, restartDeployment, resumeDeployment } from './lifecycle.ts';
import {
  caller,
  deploy,
  type Market,
  openMarket,
  outcomeOf,
  read,
  withoutRevision,
} from './market.fixture.ts';
import { terminateDeployment } from './terminate.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const restart = (by = caller, id = 'dep-1') =>
  outcomeOf(market.clock, restartDeployment(market.deps, by, id));
const status = (by = caller, id = 'dep-1') => outcomeOf(market.clock, readRebootStatus(market.deps, by, id));
const calls = () =>
  market.plain.faults.calls.map(({ method }) => method).filter((it) => it !== 'getInstance');

function changeOffer(changes: Partial<CatalogOffer>): void {
  const { offers } = market.provider.catalog;
  offers.set('gpu-1', { ...(offers.get('gpu-1') as CatalogOffer), ...changes });
}

async function expectNothingChanged(before: DeploymentRecord): Promise<void> {
  expect(withoutRevision(await read(market))).toEqual(withoutRevision(before));
}

describe('restart', () => {
  it('leaves the status and the billing as they are, and is one call of its own [restart-keeps-status-and-billing]', async () => {
    const before = await deploy(market);
    const since = market.clock.now();
    expect(await restart()).toMatchObject({ status: 'running', hourlyRate: 2, pausedAt: null });
    const { action, ...after } = withoutRevision(await read(market));
    expect({ ...after, action: null }).toEqual(withoutRevision(before));
    expect(action).toMatchObject({ kind: 'restart', since, attempt: 1, answer: 'accepted' });
    expect(calls()).toEqual(['restartInstance']);
  });

  it('is a 409 while another restart is in flight', async () => {
    await deploy(market);
    await restart();
    expect(await restart()).toMatchObject({ code: 'CHANGE_IN_PROGRESS', status: 409 });
    expect(calls()).toEqual(['restartInstance']);
  });

  it.each([
    ['for a machine type that cannot', { offerId: 'metal-1', instanceType: 'BARE_METAL' }, 'bare metal'],
    ['for one that is stopped', { status: 'stopped' }, 'stopped'],
    ['for one that is deploying', { status: 'deploying' }, 'deploying'],
  ] as const)(
    'is a 400 that names the limit %s, and never emulated [restart-unsupported]',
    async (_, changes, text) => {
      const before = await deploy(market, changes);
      expect(await restart()).toMatchObject({ status: 400, message: expect.stringContaining(text) });
      await expectNothingChanged(before);
      expect(calls()).toEqual([]);
    },
  );

  it('is a 400 where the provider does not announce it', async () => {
    await deploy(market);
    changeOffer({ announcesRestart: false });
    expect(await restart()).toMatchObject({ code: 'ACTION_UNSUPPORTED', status: 400 });
    expect(calls()).toEqual([]);
  });

  it('continues where the answer was lost and the provider reports a restart', async () => {
    await deploy(market);
    market.plain.faults.plan = (method) => (method === 'restartInstance' ? 'commit-then-lose' : 'none');
    expect(await restart()).toMatchObject({ status: 'running' });
    expect((await read(market)).action).toMatchObject({ kind: 'restart', attempt: 1 });
  });

  it('is a 504 where it was lost on its way, and the provider shows no restart [restart-lost]', async () => {
    await deploy(market);
    market.plain.faults.plan = (method) =>
      method === 'restartInstance'
        ? { error: new ProviderError('timeout', 'lost', { mayHaveHappened: true }) }
        : 'none';
    expect(await restart()).toMatchObject({ code: 'PROVIDER_SLOW', status: 504 });
    await market.clock.advance(30_000);
    expect((await read(market)).action).toBeNull();
  });

  it('is a 504 where the outcome is not known, and stays in flight', async () => {
    await deploy(market);
    market.plain.faults.plan = () => 'lose';
    expect(await restart()).toMatchObject({ code: 'PROVIDER_SLOW', status: 504 });
    expect((await read(market)).action).toMatchObject({ kind: 'restart', attempt: 1 });
    expect(calls().filter((method) => method === 'restartInstance')).toHaveLength(1);
  });
});

describe('a request that reads the row only after another intent was written', () => {
  const busy = new ProviderError('conflict', '409', { status: 409, code: 'operation_in_progress' });

  /** The dependencies of a request whose reads block until `open` is called. */
  function gated(): { deps: Market['deps']; open: () => void } {
    const { store } = market.deps;
    const { promise, resolve } = Promise.withResolvers<void>();
    const byId = (id: string) => promise.then(() => store.read.deployments.byId(id));
    const read = { ...store.read, deployments: { ...store.read.deployments, byId } };
    return { deps: { ...market.deps, store: { ...store, read } }, open: resolve };
  }

  it('is answered with the refusal of its own restart [refusal-outlives-next-intent]', async () => {
    await deploy(market);
    const { deps, open } = gated();
    market.plain.faults.plan = (method) =>
      method === 'restartInstance' ? { error: busy } : method === 'stopInstance' ? 'hang' : 'none';
    const restarting = restartDeployment(deps, caller, 'dep-1');
    restarting.catch(() => undefined);
    await market.clock.advance(100);
    pauseDeployment(market.deps, caller, 'dep-1').catch(() => undefined);
    await market.clock.advance(100);
    expect((await read(market)).action).toMatchObject({ kind: 'pause' });
    open();
    expect(await outcomeOf(market.clock, restarting)).toMatchObject({ code: 'CHANGE_IN_PROGRESS' });
  });

  it('is a 504 where a later refusal has replaced its own', async () => {
    await deploy(market);
    const { deps, open } = gated();
    market.plain.faults.plan = (method) => (method === 'restartInstance' ? { error: busy } : 'none');
    const first = restartDeployment(deps, caller, 'dep-1');
    first.catch(() => undefined);
    await market.clock.advance(100);
    expect(await restart()).toMatchObject({ code: 'CHANGE_IN_PROGRESS' });
    open();
    expect(await outcomeOf(market.clock, first)).toMatchObject({
      code: 'PROVIDER_SLOW',
      message:
        'The outcome of the restart at provider-x is not known; poll the deployment instead of retrying.',
    });
  });

  it('is a 504, and not "nothing changed", where its change was made and undone', async () => {
    market.plain.options.startMs = 1_000;
    await deploy(market);
    const { deps, open } = gated();
    const pausing = pauseDeployment(deps, caller, 'dep-1');
    pausing.catch(() => undefined);
    await market.clock.advance(15_000);
    expect(await read(market)).toMatchObject({ status: 'stopped', action: null });
    const resuming = resumeDeployment(market.deps, caller, 'dep-1');
    expect(await outcomeOf(market.clock, resuming)).toMatchObject({ status: 'running' });
    open();
    expect(await outcomeOf(market.clock, pausing)).toMatchObject({ code: 'PROVIDER_SLOW' });
  });
});

it('does not change a deployment that was terminated during the call to the provider', async () => {
  await deploy(market);
  market.plain.faults.plan = (method) => (method === 'restartInstance' ? 'hang' : 'none');
  const restarting = restartDeployment(market.deps, caller, 'dep-1');
  restarting.catch(() => undefined);
  await market.clock.advance(1_000);
  await terminateDeployment(market.deps, caller, 'dep-1');
  const before = await read(market);
  expect(await outcomeOf(market.clock, restarting)).toMatchObject({ code: 'INVALID_STATUS' });
  expect(await read(market)).toEqual(before);
});

describe('reboot-status', () => {
  it('follows the provider: in flight, and finished [reboot-status]', async () => {
    await deploy(market);
    expect(await status()).toEqual({ restarting: false });
    const since = new Date(market.clock.now() + 1_000).toISOString();
    await market.clock.advance(0);
    await restart();
    const inFlight = await status();
    expect(inFlight).toMatchObject({ restarting: true });
    expect(Date.parse((inFlight as { since: string }).since)).toBeLessThanOrEqual(Date.parse(since));
    await market.clock.advance(60_000);
    expect(await status()).toEqual({ restarting: false });
  });

  it('agrees with the 409: a restart is in flight for both, and is over for both at once', async () => {
    await deploy(market);
    await restart();
    await market.clock.advance(4_000);
    expect(await status()).toMatchObject({ restarting: true });
    expect(await restart()).toMatchObject({ code: 'CHANGE_IN_PROGRESS' });
    await market.clock.advance(60_000);
    expect(await status()).toEqual({ restarting: false });
    expect(await restart()).toMatchObject({ status: 'running' });
  });

  it('says restarting while the provider has not answered the restart, as the 409 does', async () => {
    const since = market.clock.now() + 3_600_000;
    await deploy(market, { action: intent('restart', { since, attempt: 0 }) });
    await market.clock.advance(30_000);
    expect(await status()).toEqual({ restarting: true, since: new Date(since).toISOString() });
  });

  it('is false for a deployment that is not running, without a call to the provider', async () => {
    await deploy(market, { status: 'stopped' });
    expect(await status()).toEqual({ restarting: false });
    expect(calls()).toEqual([]);
  });

  it('still shows restarting where the provider reports no reboot state and a restart was begun here', async () => {
    const since = market.clock.now() + 3_600_000;
    await deploy(market, { action: intent('restart', { since }) });
    market.plain.faults.plan = () => 'lose';
    expect(await status()).toEqual({ restarting: true, since: new Date(since).toISOString() });
  });

  it('is a 400 for a machine type without restarts [reboot-status-unsupported]', async () => {
    await deploy(market, { offerId: 'metal-1', instanceType: 'BARE_METAL' });
    expect(await status()).toMatchObject({ code: 'ACTION_UNSUPPORTED', status: 400 });
  });
});
