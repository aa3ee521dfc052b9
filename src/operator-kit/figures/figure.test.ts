import { describe, expect, it } from 'vitest';
import type { FigurePeriod, FigureRecord, FigureRow } from '../model.ts';
import { type FigureSpec, keepFigure, readFigure, toCsv } from './figure.ts';
import { addRows, countBy, quantileOf, split, toObservation } from './rows.ts';

const HOUR = 3_600_000;
const now = Date.UTC(2026, 9, 25, 1, 30);
const hour = now - 30 * 60_000;

const spec: FigureSpec = {
  name: 'sold',
  title: 'Sold',
  unit: 'units',
  about: '',
  series: 'units',
  labels: ['offer', 'region'],
  columns: ['sold', 'a,b'],
  shape: 'area',
  read: (subjects) => {
    const sums = subjects.map((rows) => rows.reduce((sum, row) => sum + (split(row).values[0] ?? 0), 0));
    return { sold: sums.reduce((sum, one) => sum + one, 0) / 3, 'a,b': subjects.length };
  },
  summarise: () => '',
};

function readerOf(records: readonly [at: number, subject: string, rows: readonly FigureRow[]][]) {
  let reads = 0;
  return {
    reads: () => reads,
    list: async ({ step, series, from, until, subject }: FigurePeriod) => {
      reads++;
      return records
        .map(([at, of, rows]): FigureRecord => ({ step, series, at, subject: of, rows }))
        .filter((one) => one.at >= from && one.at < until && (subject ?? one.subject) === one.subject);
    },
  };
}

describe('a figure', () => {
  it('has a point for each hour up to now, and none where nothing was recorded', async () => {
    const reader = readerOf([
      [hour - 2 * HOUR, 'east', [['a', 'x', 4]]],
      [hour, 'east', [['a', 'x', 8]]],
      [hour - 24 * HOUR, 'east', [['a', 'x', 1_000]]],
    ]);
    const figure = await readFigure(reader, spec, { range: '24h', now });
    expect([figure.points.length, figure.from, figure.until]).toEqual([24, hour - 23 * HOUR, hour + HOUR]);
    expect(figure.points.slice(-3).map(({ values }) => values?.['sold'])).toEqual([
      1.333333,
      undefined,
      2.666667,
    ]);
    expect(figure.points.at(-2)?.values).toBeNull();
    expect(figure.whole).toEqual({ sold: 4, 'a,b': 1 });
  });

  it('has 168 hours in a week in which clocks go back, and 90 days of UTC', async () => {
    const week = await readFigure(readerOf([]), spec, { range: '7d', now });
    expect([week.points.length, new Set(week.points.map(({ at }) => at)).size]).toEqual([168, 168]);
    expect(week.table.map(({ at }) => at % 86_400_000)).toEqual(Array.from({ length: 8 }, () => 0));
    const quarter = await readFigure(readerOf([]), spec, { range: '90d', now });
    expect([quarter.points.length, quarter.whole]).toEqual([90, null]);
    expect(new Date(quarter.until).toISOString()).toBe('2026-10-26T00:00:00.000Z');
  });

  it('is filtered by the texts of its rows; before an offer came and after it left there is a gap', async () => {
    const reader = readerOf([
      [
        hour - 2 * HOUR,
        'east',
        [
          ['', '', 3],
          ['old', 'x', 6],
        ],
      ],
      [
        hour - HOUR,
        'east',
        [
          ['old', 'x', 9],
          ['new', 'y', 3],
        ],
      ],
      [
        hour,
        'east',
        [
          ['new', 'x', 3],
          ['new', 'y', 30],
        ],
      ],
    ]);
    const soldOf = async (labels: Record<string, string>) => {
      const { points } = await readFigure(reader, spec, { range: '24h', now, filter: { labels } });
      return points.slice(-3).map(({ values }) => values?.['sold'] ?? null);
    };
    expect(await soldOf({ offer: 'old' })).toEqual([3, 3, null]);
    expect(await soldOf({ offer: 'new', region: 'y' })).toEqual([1, 1, 10]);
    expect((await soldOf({ region: 'y' })).at(-1)).toBe(10);
  });

  it('is CSV with a line for each point, and empty cells in a gap', () => {
    const points = [
      { at: hour, values: { sold: 1.5 } },
      { at: hour + HOUR, values: null },
    ];
    expect(toCsv({ columns: ['sold', 'a,b'], points })).toBe(
      'at,sold,"a,b"\n2026-10-25T01:00:00.000Z,1.5,\n2026-10-25T02:00:00.000Z,,\n',
    );
  });

  it('is read once a minute for pages, and again if that failed', async () => {
    const reader = readerOf([]);
    const read = (at: number, key = 'sold') =>
      keepFigure(reader, key, at, () => readFigure(reader, spec, { range: '24h', now }));
    for (const at of [now, now + 5_000, now + 59_000]) await read(at);
    expect(reader.reads()).toBe(1);
    await read(now, 'other');
    await read(now + 60_000);
    await read(now - 60_000);
    expect(reader.reads()).toBe(4);
    const broken = () => Promise.reject(new Error('no'));
    await expect(keepFigure(reader, 'broken', now, broken)).rejects.toThrow('no');
    expect((await read(now, 'broken')).points).toHaveLength(24);
  });
});

describe('rows', () => {
  it('with the same texts are added up place by place, in one order', () => {
    const added = addRows([
      ['b', 1],
      ['a', 'x', 1, 2],
      ['a', 'x', 1],
      ['b', 1, 0, 5],
    ]);
    expect(added).toEqual([
      ['a', 'x', 2, 2],
      ['b', 2, 0, 5],
    ]);
    expect(countBy(added, ([first]) => (first === 'b' ? 'bees' : undefined))).toEqual({ bees: 2 });
  });

  it('of durations give the quantiles of all of them, however they were added', () => {
    const bounds = [1, 10, 100];
    const durations = [...Array.from({ length: 50 }, () => 500), ...Array.from({ length: 50 }, () => 5_000)];
    const all = addRows(durations.map((ms) => toObservation(ms, bounds)))[0]?.map(Number) ?? [];
    expect(all.slice(0, 2)).toEqual([100, 275_000]);
    expect(quantileOf(all, bounds, 0.5)).toBe(1);
    expect(quantileOf(all, bounds, 0.95)).toBeCloseTo(9.1);
    expect(quantileOf(toObservation(500_000, bounds), bounds, 0.5)).toBe(100);
    expect(quantileOf([], bounds, 0.5)).toBeUndefined();
  });
});
