import { describe, expect, it } from 'vitest';
import { mortalClock } from '../../../test/support/time/virtual-clock.ts';
import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import { transition } from '../deployments/transition.ts';
import type { Deps } from '../deps.ts';
import type { Store } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import { ProviderWorkers } from './provider-workers.ts';
import {
  accept,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  seededRandom,
  statuses,
  stopped,
} from './sync.fixture.ts';

/** A process that crashes at its n-th step, before or after the step takes effect. */
class Mortal {
  readonly deps: Deps;
  isDead = false;
  #left: number;
  readonly #isAfter: boolean;

  constructor({ deps }: SyncSetup, diesAt: number, isAfter: boolean) {
    this.#left = diesAt;
    this.#isAfter = isAfter;
    this.deps = {
      ...deps,
      random: seededRandom(diesAt),
      clock: mortalClock(deps.clock, () => !this.isDead),
      store: this.#mortal(deps.store, ['transact']) as Store,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      providers: {
        ids: () => ['provider-x'],
        get: (id) => {
          const provider = deps.providers.get(id) as Provider;
          return {
            ...provider,
            client: this.#mortal(provider.client, Object.keys(provider.client)) as OrchestratorClient,
          };
        },
      },
    };
  }

  #mortal<T extends object>(target: T, steps: readonly string[]): T {
    return new Proxy(target, {
      get: (object, name) => {
        const member: unknown = Reflect.get(object, name);
        if (typeof member !== 'function' || !steps.includes(String(name))) return member;
        return (...args: unknown[]) => this.#step(() => member.apply(object, args));
      },
    });
  }

  async #step(step: () => unknown): Promise<unknown> {
    const never = new Promise(() => {});
    if (this.isDead) return never;
    if (--this.#left > 0) return step();
    this.isDead = true;
    if (this.#isAfter) await step();
    return never;
  }
}

/** Crashes a process at each of its steps in turn and continues with another one, until a process completes. */
async function everyDeath(
  prepare: (setup: SyncSetup) => Promise<string>,
  check: (setup: SyncSetup, id: string) => Promise<void>,
  isAfter: boolean,
): Promise<number> {
  for (let diesAt = 1; ; diesAt++) {
    const setup = await openProviderWorkers();
    const id = await prepare(setup);
    const mortal = new Mortal(setup, diesAt, isAfter);
    new ProviderWorkers({ ...setup.deps, ...mortal.deps }).start();
    await setup.clock.advance(MINUTE_MS);
    const hasDied = mortal.isDead;
    mortal.isDead = true;
    const heir = new ProviderWorkers({ ...setup.deps, random: seededRandom(1_000 + diesAt) });
    heir.start();
    await setup.clock.advance(6 * MINUTE_MS);
    await check(setup, id);
    await stopped(setup.clock, heir);
    await setup.close();
    if (!hasDied || diesAt > 14) return diesAt;
  }
}

describe.each([
  ['before', false],
  ['after', true],
] as const)('a process that dies %s any of its steps', (_, isAfter) => {
  it('creates an accepted deployment once, or fails it and leaves nothing [crash-at-each-step]', async () => {
    const outcomes = new Set<string>();
    const deaths = await everyDeath(
      (setup) => accept(setup),
      async (setup, id) => {
        const { status, failureReason } = await read(setup, id);
        outcomes.add(status === 'failed' ? `failed ${failureReason}` : status);
        expect(statuses(setup.plain)).toEqual(status === 'running' ? ['ONLINE'] : []);
        expect(setup.plain.faults.countOf('createInstance')).toBeLessThanOrEqual(1);
        const segments = await setup.store.read.ledger.segmentsOf('deployment', id);
        expect(segments.map(({ endedAt }) => endedAt)).toEqual(status === 'running' ? [null] : []);
      },
      isAfter,
    );
    expect(deaths).toBeGreaterThan(6);
    // Fails only if the create was marked as sent but never sent.
    expect([...outcomes].sort()).toEqual(['failed provider_error', 'running']);
  });

  it('removes the instances of terminated deployments', async () => {
    await everyDeath(
      async (setup) => {
        const { id } = await running(setup);
        await stopped(setup.clock, setup.workers);
        const at = setup.clock.now();
        await setup.store.transact(async (tx) => {
          const record = await tx.deployments.byId(id);
          if (record !== null) await transition(setup.deps, tx, record, { to: 'terminated', at });
        });
        return id;
      },
      async (setup, id) => {
        expect(await read(setup, id)).toMatchObject({ status: 'terminated', cleanup: 'done' });
        expect(setup.plain.instances).toEqual([]);
        const [segment] = await setup.store.read.ledger.segmentsOf('deployment', id);
        expect(segment?.endedAt).toBe((await read(setup, id)).stoppedAt);
      },
      isAfter,
    );
  });
});
