import { type HourOfFigures, startOf } from '../../operator-kit/figures/recorder.ts';
import { addRows, HOUR_MS, toObservation } from '../../operator-kit/figures/rows.ts';
import type { FigureRow } from '../../operator-kit/model.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { CALL_BUCKETS, ONLINE_BUCKETS } from '../model/telemetry.ts';
import { CALLS } from '../operate/figures/call-counts.ts';
import { CAPACITY, OUTCOMES } from '../operate/figures/source.ts';
import type { TestConsole } from './console.fixture.ts';

const SAMPLES = 12;
const CAUSES = ['ssh: auth', 'create: capacity', 'ssh: connect', 'create: image_missing'];

/** Fills the console's database with 90 days of figures. For nine hours, no server ran. */
export async function putDemoFigures({ store, catalog, clock }: TestConsole): Promise<void> {
  const last = startOf(HOUR_MS, clock.now());
  const first = startOf(DAY_MS, last) - 90 * DAY_MS;
  const days = new Map<string, { hour: Omit<HourOfFigures, 'how'>; rows: FigureRow[] }>();
  await store.transact(async (tx) => {
    for (let at = first; at <= last; at += HOUR_MS) {
      const isOff = at > last - 80 * HOUR_MS && at <= last - 71 * HOUR_MS;
      if (isOff) continue;
      for (const hour of hoursAt(at, Math.round((at - first) / HOUR_MS), catalog)) {
        if (at > last - 8 * DAY_MS) await tx.figures.put({ step: 'hour', ...hour });
        const day = startOf(DAY_MS, at);
        const key = `${day} ${hour.series} ${hour.subject}`;
        const known = days.get(key) ?? { hour: { ...hour, at: day }, rows: [] };
        days.set(key, { ...known, rows: addRows([...known.rows, ...hour.rows]) });
      }
    }
    for (const { hour, rows } of days.values()) await tx.figures.put({ step: 'day', ...hour, rows });
  });
}

function hoursAt(at: number, index: number, catalog: TestConsole['catalog']): Omit<HourOfFigures, 'how'>[] {
  // Demand grows over the weeks, and rises and falls with each day.
  const demand = 0.45 + 0.3 * (index / 2_200) + 0.15 * Math.sin((index / 24) * 2 * Math.PI);
  const creates = Math.max(1, Math.round(6 * demand + (index % 5)));
  return ['default', 'west'].flatMap((subject) => {
    const offers = [...catalog.offers.values()].filter(({ platform }) => platform === subject);
    const places = offers.flatMap((offer) => offer.placements.map((place) => ({ offer, ...place })));
    const units = places.map(({ offer, region, units: all }) => {
      const sold = Math.round(all * demand);
      const broken = Math.min(all - sold, index % 90 > 60 ? 1 : 0);
      const figures = [all, sold, all - sold - broken, Math.round(sold / 8), broken];
      const earned = sold * offer.priceMicroUsdPerHour;
      return [offer.id, region, ...[...figures, earned].map((figure) => figure * SAMPLES)];
    });
    const place = [offers[0]?.id ?? '', places[0]?.region ?? ''];
    const online = Array.from({ length: creates }, (_, create) => {
      const ms = 40_000 + ((index * 7919 + create * 104_729) % 90_000);
      return [...place, 'online', '', ...toObservation(ms, ONLINE_BUCKETS)];
    });
    const failed = index % 4 === 0 ? [[...place, 'failed', CAUSES[(index / 4) % 4] ?? '', 1]] : [];
    const calls = ['create', 'get', 'list'].map((call, kind) => [
      call,
      ['done', 'observed', 'listed'][kind] ?? '',
      ...toObservation(60 + ((index * 37) % 400) * (kind + 1), CALL_BUCKETS),
    ]);
    return [
      { series: CAPACITY, subject, at, rows: [['', '', SAMPLES], ...units] },
      { series: OUTCOMES, subject, at, rows: addRows([...online, ...failed]) },
      { series: CALLS, subject, at, rows: addRows(calls) },
    ];
  });
}
