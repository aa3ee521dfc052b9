import { afterEach, describe, expect, it } from 'vitest';
import { runningDeployment, seed } from '../../../test/support/rows/marketplace-rows.ts';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import { aroundMethods } from '../../ports/around-methods.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { LeaseLost } from '../../work/lease.ts';
import { type Market, marketOn, publicKey } from '../deployments/market.fixture.ts';
import type { Reader, Store } from '../model/store.ts';
import { leaseOf, ProviderWorkers } from './provider-workers.ts';
import { MINUTE_MS, seededRandom, stopped } from './sync.fixture.ts';

const PROVIDERS = ['provider-x', 'provider-y', 'provider-z', 'provider-w'];
const POLL_MS = 200;
const DEPLOYMENTS = 8 * PROVIDERS.length;
/** The longest time without a poll of a deployment while servers start and stop. */
const LONGEST_PAUSE_MS = 42_000;

/** The polls of all servers: the current calls, and the times of each deployment's polls. */
interface Polls {
  open: Map<string, string>;
  overlaps: string[];
  times: Map<string, number[]>;
  /** The highest number of concurrent polls. */
  most: number;
  /** The duration of a poll. */
  takeMs: number;
  /** The provider whose polls take nine seconds. */
  slow?: string;
}

/** One of several servers. It can be paused between any two calls. */
class Server {
  readonly name: string;
  readonly workers: ProviderWorkers;
  /** Writes of this server that the database refused because it no longer holds the lease. */
  refused = 0;
  launches = 0;
  /** Deployments for which reads throw. */
  failing: (id: string) => boolean = () => false;
  #still: PromiseWithResolvers<void> | undefined;
  #stopsAtWrite = false;

  constructor(market: Omit<Market, 'close'>, store: Store, { name, polls }: { name: string; polls: Polls }) {
    this.name = name;
    const { deps, clock, plain } = market;
    const through = async <T>(call: () => Promise<T>): Promise<T> => {
      await this.#still?.promise;
      const release = clock.hold();
      const answer = await call().finally(release);
      await this.#still?.promise;
      return answer;
    };
    const own: Store = {
      ...store,
      read: gated(store.read, async (call, id) => {
        if (this.failing(id)) throw new Error(`${id} cannot be read`);
        return through(call);
      }),
      transact: (body) => {
        if (this.#stopsAtWrite) this.#still ??= Promise.withResolvers();
        return through(() => store.transact(body)).catch((error) => {
          if (error instanceof LeaseLost) this.refused += 1;
          throw error;
        });
      },
      onWake: (woken) => store.onWake((...about) => this.#still === undefined && woken(...about)),
    };
    const polled = async <T>(provider: string, id: string, call: () => Promise<T>): Promise<T> => {
      if (polls.open.has(id)) polls.overlaps.push(`${id} by ${polls.open.get(id)} and ${name}`);
      polls.open.set(id, name);
      polls.most = Math.max(polls.most, polls.open.size);
      polls.times.set(id, [...(polls.times.get(id) ?? []), clock.now()]);
      await new Promise<void>(
        (resolve) => void clock.setTimer(provider === polls.slow ? 9_000 : polls.takeMs, resolve),
      );
      polls.open.delete(id);
      const answer = structuredClone(await call());
      await this.#still?.promise;
      return answer;
    };
    const pollOf =
      (provider: string): OrchestratorClient['pollInstance'] =>
      (id, ...rest) =>
        polled(provider, id, () => plain.client.pollInstance(id, ...rest));
    const create: OrchestratorClient['createInstance'] = (...args) => {
      this.launches += 1;
      return plain.client.createInstance(...args);
    };
    const clientOf = (id: string) =>
      withOverrides(plain.client, { pollInstance: pollOf(id), createInstance: create });
    this.workers = new ProviderWorkers({
      ...deps,
      store: own,
      random: seededRandom(name.charCodeAt(name.length - 1)),
      providers: {
        ids: () => PROVIDERS,
        get: (id) => (PROVIDERS.includes(id) ? { ...market.provider, id, client: clientOf(id) } : undefined),
      },
      refreshCatalog: async () => undefined,
    });
  }

  /** Pauses the server at its next write. */
  standStill(): void {
    this.#stopsAtWrite = true;
  }

  goOn(): void {
    this.#still?.resolve();
    this.#still = undefined;
    this.#stopsAtWrite = false;
  }
}

type Through = <T>(call: () => Promise<T>, subject: string) => Promise<T>;

function gated(read: Reader, through: Through): Reader {
  const readers = Object.entries(read).map(([name, reader]: [string, object]) => [
    name,
    aroundMethods(reader, (call, _name, [subject]) => through(call, String(subject))),
  ]);
  return Object.fromEntries(readers);
}

let store: Store;
let market: Omit<Market, 'close'>;
let servers: Server[];
let polls: Polls;
/** The servers that have not been killed. */
let living: Server[];

async function begin(count: number): Promise<void> {
  store = await openTestMarketStore();
  await seed(store, 1_000_000_000);
  market = marketOn(store, { capacity: DEPLOYMENTS + 2 });
  market.worker.stop();
  polls = { open: new Map(), overlaps: [], times: new Map(), most: 0, takeMs: POLL_MS };
  startServers(count);
  for (let number = 0; number < DEPLOYMENTS; number++) await insert(number);
  await market.clock.advance(market.plain.options.bootMs);
}

function startServers(count: number): void {
  servers = Array.from(
    { length: count },
    (_, index) => new Server(market, store, { name: `server ${index}`, polls }),
  );
  living = [...servers];
}

async function insert(number: number): Promise<void> {
  const { plain, clock, deps } = market;
  const made = plain.create({ configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: [publicKey] });
  await deps.store.transact((tx) =>
    tx.deployments.insert(
      runningDeployment({
        id: `dep-${String(number).padStart(3, '0')}`,
        providerName: `bm-00c0ffee-${number}`,
        providerId: PROVIDERS[number % PROVIDERS.length] ?? '',
        offerId: 'gpu-1',
        region: 'eu-one',
        providerInstanceId: made.id,
        createdAt: clock.now(),
        startedAt: clock.now(),
        observedAt: clock.now(),
      }),
    ),
  );
}

/** The number of providers of each server, the most first, without zeros. */
async function shares(): Promise<number[]> {
  const { deps, clock } = market;
  const taken = await deps.store.transact((tx) => tx.leases.taken(PROVIDERS.map(leaseOf), '', clock.now()));
  const counts = Map.groupBy(
    taken.filter(({ holder }) => holder !== ''),
    ({ holder }) => holder,
  );
  return [...counts.values()].map(({ length }) => length).sort((a, b) => b - a);
}

/** Checks that since then no deployment was left out, and that no two servers polled the same one at once. */
function expectPolled(since: number, pauseMs = LONGEST_PAUSE_MS): void {
  const pauses = [...polls.times].map(([id, times]) => {
    const all = [since, ...times.filter((at) => at > since), market.clock.now()];
    return { id, pauseMs: Math.max(...all.slice(1).map((at, index) => at - (all[index] ?? 0))) };
  });
  expect(pauses).toHaveLength(DEPLOYMENTS);
  expect(pauses.filter((it) => it.pauseMs > pauseMs)).toEqual([]);
  expect(polls.overlaps).toEqual([]);
}

afterEach(async () => {
  for (const { workers } of living) await stopped(market.clock, workers);
});

describe('providers', () => {
  it.each([
    [2, [2, 2]],
    [4, [1, 1, 1, 1]],
  ])(
    'are shared by %d servers that come one by one, and no deployment is left out [leases-polled-once]',
    async (count, expected) => {
      await begin(count);
      const { clock } = market;
      servers[0]?.workers.start();
      await clock.advance(MINUTE_MS);
      expect(await shares()).toEqual([PROVIDERS.length]);
      const since = clock.now();
      for (const { workers } of servers.slice(1)) {
        workers.start();
        await clock.advance(3_000);
      }
      await clock.advance(20_000);
      expect(await shares()).toEqual(expected);
      await clock.advance(3 * MINUTE_MS);
      expect(await shares()).toEqual(expected);
      expectPolled(since);
      const calm = clock.now();
      await clock.advance(2 * MINUTE_MS);
      expectPolled(calm, 30_000 + POLL_MS);
    },
  );

  it('are handed over once the calls to them have ended [leases-calls-ended]', async () => {
    await begin(2);
    const { clock } = market;
    polls.takeMs = 9_000;
    servers[0]?.workers.start();
    await clock.advance(MINUTE_MS);
    servers[1]?.workers.start();
    await clock.advance(MINUTE_MS);
    expect([await shares(), polls.overlaps]).toEqual([[2, 2], []]);
    polls.takeMs = POLL_MS;
  });

  it('go over at once when a server ends [leases-handed-over]', async () => {
    await begin(2);
    const { clock } = market;
    for (const { workers } of servers) workers.start();
    await clock.advance(MINUTE_MS);
    expect(await shares()).toEqual([2, 2]);
    const since = clock.now();
    await stopped(clock, servers[0]?.workers as ProviderWorkers);
    living = servers.slice(1);
    await clock.advance(10_000);
    expect(await shares()).toEqual([PROVIDERS.length]);
    await clock.advance(MINUTE_MS);
    expectPolled(since);
  });

  it('go over one by one: a provider that hangs while a server ends delays no other [leases-end-apart]', async () => {
    await begin(2);
    const { clock } = market;
    for (const { workers } of servers) workers.start();
    await clock.advance(MINUTE_MS);
    const isOfFirst = (id: string) => servers[0]?.workers.of(id)?.isActive === true;
    polls.slow = PROVIDERS.find(isOfFirst) ?? '';
    await clock.advance(MINUTE_MS);
    const ended = servers[0]?.workers.stop();
    living = servers.slice(1);
    await clock.advance(1_000);
    expect(await shares()).toEqual([3, 1]);
    await clock.advance(10_000);
    await ended;
    expect(await shares()).toEqual([4]);
    delete polls.slow;
  });

  it('of a server that is killed are those of the others once its leases have run out [leases-server-killed]', async () => {
    await begin(4);
    const { clock } = market;
    for (const { workers } of servers) workers.start();
    await clock.advance(MINUTE_MS);
    const since = clock.now();
    servers[1]?.standStill();
    living = servers.filter((_, index) => index !== 1);
    await clock.advance(41_000);
    expect(await shares()).toEqual([2, 1, 1]);
    await clock.advance(MINUTE_MS);
    expectPolled(since, LONGEST_PAUSE_MS + 30_000);
  });

  it('of a suspended server go to the others: its late writes are refused, and it gets a share again [leases-late-writes]', async () => {
    await begin(2);
    const { clock, plain, deps } = market;
    const [first, second] = servers as [Server, Server];
    for (const { workers } of servers) workers.start();
    await clock.advance(MINUTE_MS);
    const polled = () => [...polls.open].find(([, name]) => name === first.name)?.[0];
    while (polled() === undefined) await clock.advance(50);
    const machine = plain.get(polled() ?? '');
    // The first server gets this answer and pauses before it writes it. The other server sees the later one.
    machine.public_ip = '198.51.100.1';
    first.standStill();
    await clock.advance(1_000);
    machine.public_ip = '198.51.100.2';
    await clock.advance(2 * MINUTE_MS);
    expect(await shares()).toEqual([PROVIDERS.length]);
    expect([first.refused, second.refused]).toEqual([0, 0]);
    first.goOn();
    await clock.advance(25_000);
    expect(first.refused).toBeGreaterThan(0);
    expect(second.refused).toBe(0);
    const records = await Promise.all(
      PROVIDERS.map((id) => deps.store.read.deployments.byInstance(id, machine.id)),
    );
    const [record] = records.flat();
    expect(record?.ipAddress).toBe('198.51.100.2');
    expect(await shares()).toEqual([2, 2]);
    const since = clock.now();
    polls.overlaps.length = 0;
    await clock.advance(2 * MINUTE_MS);
    expectPolled(since, 30_000 + POLL_MS);
  });

  it('are isolated: one that another process takes, or a deployment whose steps fail, stops no other [lease-trouble-isolated]', async () => {
    await begin(1);
    const { clock, deps } = market;
    const [only] = servers as [Server];
    only.failing = (id) => id === 'dep-002';
    only.workers.start();
    await clock.advance(MINUTE_MS);
    const later = clock.now() + MINUTE_MS;
    await deps.store.transact((tx) =>
      tx.leases.claim([leaseOf('provider-y')], 'another', later, 9 * MINUTE_MS),
    );
    const since = clock.now();
    await clock.advance(3 * MINUTE_MS);
    const rest = [...polls.times].flatMap(([, times]) =>
      times.some((at) => at > since + MINUTE_MS) ? [1] : [],
    );
    // Those of the provider that was taken, and the failing one.
    expect(rest).toHaveLength(DEPLOYMENTS - 8 - 1);
    only.failing = () => false;
    await clock.advance(10 * MINUTE_MS);
    expectPolled(clock.now() - MINUTE_MS, 30_000 + POLL_MS);
  });

  it('receive the wake of a deployment: it is made once [leases-woken]', async () => {
    await begin(4);
    const { clock, deps } = market;
    for (const { workers } of servers) workers.start();
    await clock.advance(MINUTE_MS);
    const request = {
      configuration_id: 'gpu-1',
      region: 'eu-one',
      ssh_keys: [publicKey],
      name: 'bm-00c0ffee-new',
    };
    await deps.store.transact(async (tx) => {
      await tx.deployments.insert(
        runningDeployment({
          id: 'dep-new00b',
          providerName: request.name,
          providerId: 'provider-x',
          offerId: 'gpu-1',
          region: 'eu-one',
          status: 'deploying',
          providerInstanceId: null,
          createdAt: clock.now(),
          startedAt: null,
          launch: { state: 'wanted', request, sentAt: null },
        }),
      );
      await tx.signals.wake('provider-x', 'dep-new00b');
    });
    await clock.advance(6_000);
    expect(servers.map(({ launches }) => launches).sort()).toEqual([0, 0, 0, 1]);
  });
});
