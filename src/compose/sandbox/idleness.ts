import { lowBalanceMinutes } from '../../marketplace/ledger/balance-watch.ts';
import { takeReading } from '../../marketplace/ledger/watch-team.ts';
import { remainingMinutes } from '../../marketplace/model/ledger-records.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import type { BalanceWatch } from '../../marketplace/model/people.ts';
import type { Reader } from '../../marketplace/model/store.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import type { Idleness } from '../../sandbox/clock.ts';
import type { StartedMarketplace } from './marketplace.ts';
import type { StartedProvider } from './provider.ts';

const MINUTE_MS = 60_000;
/** Work that is due later than this does not prevent skips. */
const SOON_MS = 10 * MINUTE_MS;
/** More work than the machines of a sandbox have. */
const MOST_WORK = 100_000;
/** The calm after a balance event is this much shorter. It lasts until a second reading has confirmed the first. */
const SHORTER_MS = 3 * MINUTE_MS;
const { graceMs, stoppedGraceMs, volumes } = defaultOptions.billing.zeroBalance;

interface Parts {
  now(): number;
  providers: ReadonlyMap<string, StartedProvider>;
  /** Undefined if there is no marketplace. */
  market(): Pick<StartedMarketplace, 'store' | 'skipped'> | undefined;
  mayBeStruck(): boolean;
  /** Instances whose transition waits for `finish`. */
  waiting(): ReadonlySet<string>;
}

/** Tracks the activity of a sandbox. `changed` is called for events that have consequences. */
export function createIdleness({
  now,
  providers,
  market,
  mayBeStruck,
  waiting,
}: Parts): Idleness & { changed(): void } {
  let changedAt = now();
  /** The next time at which a balance passes a threshold, by the last forecast. */
  let moneyAt = Number.POSITIVE_INFINITY;

  const nextWorkAt = async (): Promise<number> => {
    const each = [...providers.values()].map((provider) => provider.store.nextWorkAt(DEFAULT_PLATFORM));
    return Math.min(...(await Promise.all(each)).map((at) => at ?? Number.POSITIVE_INFINITY));
  };

  const nextWorkBeside = async (held: ReadonlySet<string>): Promise<number> => {
    if (held.size === 0) return nextWorkAt();
    const each = [...providers.values()].map(({ store }) => store.read.work.list(MOST_WORK));
    const others = (await Promise.all(each)).flat().filter(({ resourceId }) => !held.has(resourceId));
    return others.reduce(
      (earliest, { notBefore }) => Math.min(earliest, notBefore),
      Number.POSITIVE_INFINITY,
    );
  };

  return {
    changed() {
      changedAt = now();
    },
    lastEventAt: () => (moneyAt <= now() ? Math.max(changedAt, moneyAt - SHORTER_MS) : changedAt),
    mayBeStruck,
    async isBusy() {
      const held = waiting();
      if ((await nextWorkBeside(held)) < now() + SOON_MS) return true;
      // Reads one more than the held ones, so that at least one is not held.
      const first = { statuses: ['deploying'], limit: held.size + 1 } as const;
      const deploying = (await market()?.store.read.deployments.search(first)) ?? [];
      return deploying.some(({ providerInstanceId: id }) => id === null || !held.has(id));
    },
    async nextEventAt() {
      const { read } = market()?.store ?? {};
      moneyAt = read === undefined ? Number.POSITIVE_INFINITY : await nextMoneyEventAt(read, now());
      const machines = [...providers.values()].map(
        ({ platform }) => platform.machines.nextDueAt() ?? Infinity,
      );
      const at = Math.min(await nextWorkAt(), moneyAt, ...machines);
      return at === Number.POSITIVE_INFINITY ? undefined : at;
    },
    skipped: async (...time) => market()?.skipped(...time),
  };
}

/**
 * The next time at which a balance passes a threshold, or an empty balance has a deadline. Infinite if there is none.
 */
async function nextMoneyEventAt(read: Reader, now: number): Promise<number> {
  let first = Number.POSITIVE_INFINITY;
  for (const { id, watch } of await read.teams.list()) {
    const reading = await takeReading(read, id, now);
    const left = remainingMinutes(reading);
    const thresholds = [0, ...lowBalanceMinutes].map((minutes) => now + (left - minutes) * MINUTE_MS);
    const deadlines = reading.balanceMicroUsd > 0 ? thresholds : deadlinesOf(watch);
    first = Math.min(first, ...deadlines.filter((at) => at > now));
  }
  return Number.isFinite(first) ? Math.ceil(first) : first;
}

function deadlinesOf({ exhaustedAt, volumesDeleteAt }: BalanceWatch): number[] {
  if (exhaustedAt === null) return [];
  const deleteAt = volumesDeleteAt ?? exhaustedAt + volumes.keepMs;
  return [
    exhaustedAt + graceMs,
    exhaustedAt + graceMs + 30 * MINUTE_MS,
    exhaustedAt + stoppedGraceMs,
    exhaustedAt + graceMs + stoppedGraceMs,
    deleteAt,
    ...volumes.noticesMs.map((noticeMs) => deleteAt - noticeMs),
  ];
}
