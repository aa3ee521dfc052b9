import { startOf } from '../../../operator-kit/figures/recorder.ts';
import { addValues } from '../../../operator-kit/figures/rows.ts';
import type { FigureReader, FigureRow } from '../../../operator-kit/model.ts';
import { nextTurn } from '../../../ports/clock.ts';
import { costOf } from '../../ledger/price-change.ts';
import type { UsedSegment } from '../../model/ledger-store.ts';
import type { Reader } from '../../model/store.ts';

/** The series of what teams were charged and providers charge for the same time. */
export const USAGE = 'usage';

const AT_ONCE = 1_000;

interface Period {
  /** A multiple of `stepMs`. */
  from: number;
  now: number;
  stepMs: number;
  teamId?: string;
}

export interface Usage {
  providerId: string;
  at: number;
  rows: FigureRow[];
}

/**
 * The usage of each hour or day, from the rates of segments: revenue, the part of it whose cost at the provider is known,
 * and that cost, in micro-USD. It adds up to what the ledger charges, as far as providers have confirmed it.
 */
export async function readUsage({ ledger }: Pick<Reader, 'ledger'>, period: Period): Promise<Usage[]> {
  const sums = new Map<string, Map<number, number[]>>();
  for (const isOpen of [true, false]) {
    let after: UsedSegment | undefined;
    do {
      const page = await ledger.used({
        since: period.from,
        isOpen,
        teamId: period.teamId,
        after,
        limit: AT_ONCE,
      });
      for (const segment of page) addUsage(sums, segment, period);
      after = page.length < AT_ONCE ? undefined : page.at(-1);
      // Lets other work run between two pages.
      await nextTurn();
    } while (after !== undefined);
  }
  return [...sums].flatMap(([providerId, byTime]) =>
    [...byTime].map(([at, values]) => ({ providerId, at, rows: [values] })),
  );
}

function addUsage(
  sums: Map<string, Map<number, number[]>>,
  segment: UsedSegment,
  { from, now, stepMs }: Period,
): void {
  const { providerId, startedAt, rateMicroUsdPerHour, providerRateMicroUsdPerHour: providerRate } = segment;
  const until = Math.min(certainUntil(segment, now), now);
  const byTime = sums.get(providerId) ?? new Map<number, number[]>();
  sums.set(providerId, byTime);
  for (let at = Math.max(from, startOf(stepMs, startedAt)); at < until; at += stepMs) {
    const costAt = (rate: number): number =>
      costOf(rate, Math.min(at + stepMs, until) - startedAt) - costOf(rate, at - startedAt);
    const revenue = costAt(rateMicroUsdPerHour);
    const cost = providerRate === null ? [0, 0] : [revenue, costAt(providerRate)];
    byTime.set(at, addValues(byTime.get(at) ?? [], [revenue, ...cost]));
  }
}

/** A deployment is billed only as far as its provider has confirmed it. */
function certainUntil({ subjectKind, endedAt, confirmedUntil, startedAt }: UsedSegment, now: number): number {
  if (endedAt !== null) return endedAt;
  return subjectKind === 'volume' ? now : (confirmedUntil ?? startedAt);
}

/** Reads the usage of one team, which is not stored by hour. */
export function usageReaderOf(
  read: Pick<Reader, 'ledger'>,
  teamId: string,
  now: number,
): Pick<FigureReader, 'list'> {
  return {
    list: async ({ step, series, from, until, subject }) => {
      if (series !== USAGE || step === 'sample') return [];
      const stepMs = step === 'hour' ? 3_600_000 : 86_400_000;
      const found = await readUsage(read, { from, now: Math.min(now, until), stepMs, teamId });
      const used = Map.groupBy(found, ({ at }) => at);
      return Array.from({ length: (until - from) / stepMs }, (_, index) => {
        const at = from + index * stepMs;
        const rows = (used.get(at) ?? [])
          .filter(({ providerId }) => subject === undefined || providerId === subject)
          .flatMap((one) => one.rows);
        return { step, series, subject: teamId, at, rows };
      });
    },
  };
}
