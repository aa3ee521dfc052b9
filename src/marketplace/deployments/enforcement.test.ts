import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { topUp } from '../ledger/credit.ts';
import { sendIntent } from '../sync/intents.ts';
import { contextOf } from '../sync/worker.fixture.ts';
import { createEnforcement } from './enforcement.ts';
import { deploy, type Market, openMarket, outcomeOf, read } from './market.fixture.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
  await writeExhausted(0);
});
afterEach(() => market.store.close());

/** Sets the time since when the team's balance is used up; null: it is above zero. */
async function writeExhausted(exhaustedAt: number | null): Promise<void> {
  await market.store.transact(async (tx) => {
    const team = await tx.teams.byId(teamId);
    if (team !== null) await tx.teams.update({ ...team, watch: { ...team.watch, exhaustedAt } });
  });
}

it('stops a running deployment as its owner could', async () => {
  const { id } = await deploy(market);
  const enforcement = createEnforcement(market.deps);
  expect(
    await outcomeOf(
      market.clock,
      enforcement.stop(id, market.deps.store).then(() => 'done'),
    ),
  ).toBe('done');
  expect((await read(market, id)).action).toMatchObject({ kind: 'pause', by: 'usr-1' });
  await market.clock.advance(10_000);
  expect(await read(market, id)).toMatchObject({
    status: 'stopped',
    stoppedRateMicroUsd: expect.any(Number),
  });
});

it('reports a deployment that cannot be stopped', async () => {
  const { id } = await deploy(market, { offerId: 'gpu-spot', instanceType: 'SPOT' });
  const enforcement = createEnforcement(market.deps);
  expect(await outcomeOf(market.clock, enforcement.stop(id, market.deps.store))).toMatchObject({
    code: 'ACTION_UNSUPPORTED',
  });
  expect((await read(market, id)).status).toBe('running');
});

it('ends a running deployment, even before its minimum runtime, and deletes its instance; a second call does nothing', async () => {
  const { id } = await deploy(market, { providerMinimumRuntimeMinutes: 24 * 60 });
  const enforcement = createEnforcement(market.deps);
  await enforcement.terminate(id, market.deps.store);
  const ended = await read(market, id);
  expect(ended).toMatchObject({ status: 'terminated', cleanup: 'wanted', stoppedAt: market.clock.now() });
  expect(market.woken).toEqual([id]);
  await enforcement.terminate(id, market.deps.store);
  expect(await read(market, id)).toEqual(ended);
});

describe('a team that has paid since its turn came', () => {
  it.each(['stop', 'terminate'] as const)(
    'keeps its running deployment: a due %s is not carried out',
    async (step) => {
      const { id } = await deploy(market);
      const before = await read(market, id);
      const enforcement = createEnforcement(market.deps);
      await writeExhausted(null);
      await expect(enforcement[step](id, market.deps.store)).rejects.toThrow('is above zero again');
      // The balance is used up again, and the grace starts anew.
      await writeExhausted(market.clock.now());
      await expect(enforcement[step](id, market.deps.store)).rejects.toThrow('is above zero again');
      expect(await read(market, id)).toEqual(before);
      expect(market.plain.faults.calls.filter(({ method }) => method === 'stopInstance')).toEqual([]);
      expect(market.woken).toEqual([]);
    },
  );
});

it('a team that pays between the round and the stop keeps its deployment, as with a terminate [enforcement-paid-meanwhile]', async () => {
  const { id } = await deploy(market);
  const { store } = market.deps;
  let isPaid = false;
  const beside: typeof store = {
    ...store,
    read: store.read,
    transact: async (body) => {
      if (!isPaid) {
        isPaid = true;
        await topUp(market.deps, { teamId, amountMicroUsd: 500_000_000, reference: 'pay-1' });
      }
      return store.transact(body);
    },
  };
  const enforcement = createEnforcement(market.deps);
  await outcomeOf(
    market.clock,
    enforcement.stop(id, beside).then(() => 'done'),
  );
  expect(isPaid).toBe(true);
  expect((await read(market, id)).status).toBe('running');
});

it('a stop that no worker has sent for a minute is not sent any more: the team may have paid since [enforcement-stop-expires]', async () => {
  const { id } = await deploy(market);
  const { deps, clock, plain, provider } = market;
  market.worker.stop();
  await createEnforcement(deps).stop(id, deps.store);
  await topUp(deps, { teamId, amountMicroUsd: 500_000_000, reference: 'pay-1' });
  await clock.advance(60_000);
  await sendIntent(contextOf(deps, provider), id);
  expect(await read(market, id)).toMatchObject({ status: 'running', action: null });
  expect(plain.faults.countOf('stopInstance')).toBe(0);
});
