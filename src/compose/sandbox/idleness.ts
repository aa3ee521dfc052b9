import { watchChangesAt } from '../../marketplace/ledger/watch-team.ts';
import type { Reader } from '../../marketplace/model/store.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import { type Idleness, MAX_ADVANCE_MS } from '../../sandbox/clock.ts';
import type { Faults } from '../../sandbox/faults/faults.ts';
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
  faults: Pick<Faults, 'isArmed' | 'hasOccasions'>;
}

/** Tracks the activity of a sandbox. `changed` is called for events that have consequences. */
export function createIdleness({ now, providers, market, faults }: Parts): Idleness & { changed(): void } {
  let changedAt = now();
  const nextTransitionAt = (): number =>
    earliest(
      [...providers.values()].flatMap(({ platform: { machines, volumes } }) => [
        machines.nextDueAt(),
        ...[...volumes.all(), ...volumes.attachments()].map(({ until }) => until),
      ]),
    );
  return {
    changed() {
      changedAt = now();
    },
    lastEventAt: () => changedAt,
    isArmed: () => faults.isArmed,
    mayTrigger: () => faults.hasOccasions(changedAt),
    async isBusy() {
      const stores = [...providers.values()].map(({ store }) => store);
      const each = await Promise.all(stores.map((store) => store.nextWorkAt(DEFAULT_PLATFORM)));
      if (earliest(each) <= now() + SOON_MS) return true;
      const first = { statuses: ['deploying'], limit: 1 } as const;
      return ((await market()?.store.read.deployments.list(first)) ?? []).length > 0;
    },
    nextTransitionAt,
    async nextEventAt() {
      const { read } = market()?.store ?? {};
      const checkAt = read === undefined ? undefined : await nextCheckAt(read, now());
      const stores = [...providers.values()].map(({ store }) => store);
      const work = (await Promise.all(stores.map((store) => store.read.work.list(MOST_WORK)))).flat();
      const later = work.map(({ notBefore }) => (notBefore > now() + SOON_MS ? notBefore : undefined));
      const deadlines = work.map(({ deadlineAt }) => ((deadlineAt ?? 0) > now() ? deadlineAt : undefined));
      return earliest([...later, ...deadlines, checkAt, nextTransitionAt()]);
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
