import { watchChangesAt } from '../../marketplace/ledger/watch-team.ts';
import type { Reader } from '../../marketplace/model/store.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import { type Idleness, MAX_ADVANCE_MS } from '../../sandbox/clock.ts';
import type { Faults } from '../../sandbox/faults/faults.ts';
import type { Transitions } from '../../sandbox/transitions/transitions.ts';
import type { StartedMarketplace } from './marketplace.ts';
import type { StartedProvider } from './provider.ts';

/** Work that is due later than this does not prevent skips. */
const SOON_MS = 10 * 60_000;
/** More work than the machines of a sandbox have. */
const MOST_WORK = 100_000;

interface Parts {
  now(): number;
  providers: ReadonlyMap<string, StartedProvider>;
  /** Undefined if there is no marketplace. */
  market(): Pick<StartedMarketplace, 'store' | 'skipped' | 'runRounds'> | undefined;
  faults: Pick<Faults, 'isArmed' | 'hasOccasions' | 'stuck'>;
  transitions: Pick<Transitions, 'waiting'>;
}

/** Tracks the activity of a sandbox. `changed` is called for events that have consequences. */
export function createIdleness({
  now,
  providers,
  market,
  faults,
  transitions,
}: Parts): Idleness & { changed(): void } {
  let changedAt = now();

  /** The stuck instances and volumes, each with the time at which it may go on. `manual`: those that wait for `finish`. */
  const stuck = async (mode: 'any' | 'manual'): Promise<Map<string, number>> => {
    const found = new Map(transitions.waiting(mode).map((id) => [id, Number.POSITIVE_INFINITY]));
    if (mode === 'any') for (const { id, until } of faults.stuck()) found.set(id, until);
    for (const { store } of providers.values())
      for (const [id, until] of [...found])
        for (const { volumeId } of await store.read.volumes.attachmentsOfInstance(id))
          if (!found.has(volumeId)) found.set(volumeId, until);
    return found;
  };

  /** When the next work of other resources than these is due, and the next deadline of these. */
  const nextWorkBeside = async (held: ReadonlyMap<string, number>) => {
    const stores = [...providers.values()].map(({ store }) => store);
    if (held.size === 0) {
      const each = await Promise.all(stores.map((store) => store.nextWorkAt(DEFAULT_PLATFORM)));
      return { dueAt: earliest(each), deadlineAt: Number.POSITIVE_INFINITY };
    }
    const open = (await Promise.all(stores.map(({ read }) => read.work.list(MOST_WORK)))).flat();
    const others = open.filter(({ resourceId }) => !held.has(resourceId));
    const deadlines = open.filter(
      ({ resourceId, deadlineAt }) => held.has(resourceId) && (deadlineAt ?? 0) > now(),
    );
    return {
      dueAt: earliest(others.map(({ notBefore }) => notBefore)),
      deadlineAt: earliest(deadlines.map(({ deadlineAt }) => deadlineAt)),
    };
  };

  return {
    changed() {
      changedAt = now();
    },
    lastEventAt: () => changedAt,
    isArmed: () => faults.isArmed,
    mayBeStruck: () => faults.hasOccasions(changedAt),
    async isBusy(beside) {
      const held = await stuck(beside);
      const { dueAt } = await nextWorkBeside(held);
      if (dueAt <= now() + SOON_MS || (beside === 'manual' && (await stuck('any')).size > held.size))
        return true;
      // Reads one more than the held ones, so that at least one is not held.
      const first = { statuses: ['deploying'], limit: held.size + 1 } as const;
      const deploying = (await market()?.store.read.deployments.list(first)) ?? [];
      return deploying.some(({ providerInstanceId: id }) => id === null || !held.has(id));
    },
    async nextEventAt() {
      const { read } = market()?.store ?? {};
      const checkAt = read === undefined ? undefined : await nextCheckAt(read, now());
      const machines = [...providers.values()].map(({ platform }) => platform.machines.nextDueAt());
      const held = await stuck('any');
      const { dueAt, deadlineAt } = await nextWorkBeside(held);
      const at = earliest([dueAt, deadlineAt, checkAt, ...held.values(), ...machines]);
      return at === Number.POSITIVE_INFINITY ? undefined : at;
    },
    skipped: async (...time) => market()?.skipped(...time),
    advanced: async () => market()?.runRounds(changedAt),
  };
}

/** When a balance has to be checked next. That of a team without credit is checked each hour. */
async function nextCheckAt(read: Reader, now: number): Promise<number> {
  const teams = await read.teams.list();
  const scheduled = await read.teams.due({ now: now + MAX_ADVANCE_MS, limit: teams.length });
  const atOf = new Map(scheduled.map(({ id, at }) => [id, at]));
  const each = teams.map((team) =>
    team.watch.exhaustedAt === null ? watchChangesAt(read, team, now) : atOf.get(team.id),
  );
  return earliest(await Promise.all(each));
}

function earliest(times: Iterable<number | null | undefined>): number {
  let first = Number.POSITIVE_INFINITY;
  for (const at of times) first = Math.min(first, at ?? first);
  return first;
}
