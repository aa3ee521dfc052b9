import type { FigureSource, HourOfFigures } from '../../../operator-kit/figures/recorder.ts';
import { HOUR_MS } from '../../../operator-kit/figures/rows.ts';
import type { FigureRow } from '../../../operator-kit/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Store } from '../../model/store.ts';
import { readUsage, USAGE } from './usage.ts';

/** The series of the hourly cost of what is billed now, of what teams owe, and of launches by hour of their request. */
export const BURN = 'burn';
export const DEBT = 'debt';
export const LAUNCHES = 'launches';

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
  /** The ids of the configured providers. */
  providers: () => readonly string[];
}

/** The figures of the marketplace. The subject of each is a provider; of what teams owe, none. */
export function figureSource({ store: { read }, clock, providers }: Deps): FigureSource {
  return {
    // A provider that was silent confirms its deployments later, and a launch may fail later.
    hoursToRecount: 48,
    sample: async (hour) => {
      const [burns, owed] = await Promise.all([read.ledger.burnByProvider(), read.teams.debt(clock.now())]);
      const rateOf = new Map(burns.map(({ providerId, microUsdPerHour }) => [providerId, microUsdPerHour]));
      const sampled = { how: 'sample', at: hour } as const;
      return [
        ...[...new Set([...providers(), ...rateOf.keys()])].map((subject) => ({
          ...sampled,
          series: BURN,
          subject,
          rows: [[1, rateOf.get(subject) ?? 0]],
        })),
        { ...sampled, series: DEBT, subject: '', rows: [[1, owed]] },
      ];
    },
    count: async (from, hour) => {
      const [used, launches] = await Promise.all([
        readUsage(read, { from, now: clock.now(), stepMs: HOUR_MS }),
        read.deployments.countLaunches(from),
      ]);
      const launched = launches.map(({ providerId, hour: at, reason, count }) => ({
        providerId,
        at,
        rows: [[reason ?? '', count]],
      }));
      const period = { from, hour, providers: providers() };
      return [...toHours(USAGE, used, period), ...toHours(LAUNCHES, launched, period)];
    },
  };
}

interface Found {
  providerId: string;
  at: number;
  rows: readonly FigureRow[];
}

/** The hours in which something happened, and the last two of each configured provider. */
function toHours(
  series: string,
  found: readonly Found[],
  { from, hour, providers }: { from: number; hour: number; providers: readonly string[] },
): HourOfFigures[] {
  const rowsOf = Map.groupBy(found, ({ providerId, at }) => JSON.stringify([providerId, at]));
  const subjects = new Set([...providers, ...found.map(({ providerId }) => providerId)]);
  const hours: HourOfFigures[] = [];
  for (const subject of subjects)
    for (let at = from; at <= hour; at += HOUR_MS) {
      const rows = (rowsOf.get(JSON.stringify([subject, at])) ?? []).flatMap((one) => one.rows);
      if (rows.length > 0 || at >= hour - HOUR_MS) hours.push({ how: 'replace', series, subject, at, rows });
    }
  return hours;
}
