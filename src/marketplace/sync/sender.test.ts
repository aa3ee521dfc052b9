import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { caller } from '../deployments/market.fixture.ts';
import { pauseDeployment } from '../deployments/pause.ts';
import type { Sender } from '../model/sender.ts';
import { ProviderWorkers } from './provider-workers.ts';
import {
  accept,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  seededRandom,
  stopped,
} from './sync.fixture.ts';

let setup: SyncSetup;
let id: string;
beforeEach(async () => {
  setup = await openProviderWorkers();
  ({ id } = await running(setup));
});
afterEach(() => setup.close());

const stops = () => setup.plain.faults.countOf('stopInstance');

/** The result of a stop, or the code of its refusal. */
async function pause(sender?: Sender): Promise<string> {
  const answer = pauseDeployment({ ...setup.deps, ...(sender && { sender }) }, caller, id).then(
    ({ status }) => status,
    ({ code }) => code,
  );
  await setup.clock.advance(5 * MINUTE_MS);
  return answer;
}

describe('a request of the process that sends', () => {
  it('writes the attempt with the intent: no other transaction is between it and the call', async () => {
    const { transact } = setup.store;
    let commits = 0;
    const before: number[] = [];
    setup.store.transact = (body) =>
      transact(async (tx) => {
        const value = await body(tx);
        commits++;
        return value;
      });
    setup.plain.faults.plan = (method) => {
      if (method === 'stopInstance') before.push(commits);
      return 'none';
    };
    const answer = pauseDeployment({ ...setup.deps, sender: setup.workers }, caller, id);
    await setup.clock.advance(1);
    expect(before).toEqual([1]);
    await setup.clock.advance(5 * MINUTE_MS);
    expect((await answer).status).toBe('stopped');
    expect(stops()).toBe(1);
  });

  it('leaves the call to the process that now has the lease', async () => {
    const { leaseFor, send } = setup.workers;
    const before = setup.workers;
    const lease = leaseFor.call(before, await read(setup, id));
    await stopped(setup.clock, before);
    const heir = new ProviderWorkers({ ...setup.deps, random: seededRandom(2) });
    heir.start();
    await setup.clock.advance(1_000);
    const stale: Sender = { leaseFor: () => lease, send: send.bind(before) };
    expect(await pause(stale)).toBe('stopped');
    expect(stops()).toBe(1);
    await stopped(setup.clock, heir);
  });

  it('sends nothing after its end: the intent is withdrawn', async () => {
    const { deps, workers, clock } = setup;
    const late: Sender = {
      leaseFor: (record) => workers.leaseFor(record),
      send: (asked) => void clock.setTimer(deps.options.lifecycleWaitMs, () => workers.send(asked)),
    };
    expect(await pause(late)).toBe('PROVIDER_REFUSED');
    expect(stops()).toBe(0);
    expect(await read(setup, id)).toMatchObject({ status: 'running', action: null });
  });

  it('gives the attempt back where its turn has not come, and later sends the current row', async () => {
    const { deps, workers, clock, plain } = setup;
    const { polling } = deps.options;
    await stopped(clock, workers);
    const options = { ...deps.options, polling: { ...polling, concurrency: 1 } };
    const narrow = new ProviderWorkers({ ...deps, options, random: seededRandom(2) });
    narrow.start();
    const other = await accept(setup, { number: 2 });
    await clock.advance(2 * MINUTE_MS);
    // The only slot was free when the request checked.
    const lease = narrow.leaseFor(await read(setup, id));
    plain.faults.plan = (method, nth) => (method === 'stopInstance' && nth === 1 ? 'hang' : 'none');
    const first = pauseDeployment({ ...deps, sender: narrow }, caller, other).catch(() => undefined);
    await clock.advance(1);
    const asked: number[] = [];
    const sender: Sender = {
      leaseFor: () => lease,
      send: (sent) => {
        asked.push(sent.action.attempt);
        narrow.send(sent);
      },
    };
    const answer = pauseDeployment({ ...deps, sender }, caller, id);
    await clock.advance(1_000);
    expect([asked, (await read(setup, id)).action?.attempt, stops()]).toEqual([[1], 0, 1]);
    await clock.advance(5 * MINUTE_MS);
    expect((await answer).status).toBe('stopped');
    await first;
    await stopped(clock, narrow);
  });

  it('waits for its turn where the limit of concurrent calls is reached', async () => {
    const busy: Sender = { leaseFor: () => null, send: () => expect.unreachable() };
    expect(await pause(busy)).toBe('stopped');
    expect(stops()).toBe(1);
  });
});
