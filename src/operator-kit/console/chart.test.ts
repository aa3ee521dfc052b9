import { expect, it } from 'vitest';
import { type FigureSpec, readFigure } from '../figures/figure.ts';
import type { FigureRecord } from '../model.ts';
import { chart, toAmount } from './chart.ts';
import { figureCards, rangeLinks, rangeOf } from './figure-parts.ts';

const HOUR = 3_600_000;
const hour = Date.UTC(2026, 10, 30, 20);
const spec: FigureSpec = {
  name: 'units',
  title: 'Units <of all>',
  unit: 'units',
  about: 'Averages.',
  series: 'units',
  labels: [],
  columns: ['sold', 'free'],
  shape: 'area',
  read: ([rows = []]) => ({ sold: Number(rows[0]?.[0]), free: 10 - Number(rows[0]?.[0]) }),
  summarise: ({ sold = 0 }) => `${sold} sold`,
};
const records = [5, 4, 1, 0].map(
  (hours): FigureRecord => ({
    step: 'hour',
    series: 'units',
    subject: '',
    at: hour - hours * HOUR,
    rows: [[5]],
  }),
);
const reader = { list: async () => records };

async function drawn(changes: Partial<FigureSpec> = {}): Promise<string> {
  return String(chart(await readFigure(reader, { ...spec, ...changes }, { range: '24h', now: hour }), 'f'));
}

it('a chart has a title, a description, both axes with their units, and a bar for each point that was recorded', async () => {
  const svg = await drawn();
  expect(svg).toContain('<title id="f-t">Units &lt;of all&gt;</title>');
  expect(svg).toContain('aria-labelledby="f-t f-d"');
  expect(svg).toContain('from 2026-11-29 to 2026-11-30 UTC. 20 sold');
  expect([...svg.matchAll(/>([\d.]+)<\/text>/g)].map(([, text]) => text)).toEqual([
    '0',
    '2.5',
    '5',
    '7.5',
    '10',
  ]);
  expect(svg).toContain('>16:00</text>');
  expect(await drawn({ unit: 'USD' })).toContain('>$7.5</text>');
  const [sold = '', free = ''] = [...svg.matchAll(/<path class="c\d" d="([^"]*)"/g)].map(([, path]) => path);
  expect([sold.split('M').length - 1, free.split('M').length - 1]).toEqual([4, 4]);
});

it('a line ends at a gap and begins again behind it', async () => {
  const svg = await drawn({ shape: 'lines', columns: ['sold'] });
  const [, path = ''] = /<path class="line c1" d="([^"]*)"/.exec(svg) ?? [];
  expect(path.replace(/[\d. ]+/g, '')).toBe('MhLMhL');
});

it('a chart without figures has axes and no bars, and says so', async () => {
  const empty = await readFigure({ list: async () => [] }, spec, { range: '90d', now: hour });
  const svg = String(chart(empty, 'f'));
  expect(svg).toContain('Nothing was recorded.');
  expect(svg).not.toContain('d="M');
  expect(svg).not.toContain('NaN');
});

it('a card has the same numbers as a table, the newest first, and links to them as CSV', async () => {
  const cards = String(
    await figureCards([spec], { reader, range: '24h', now: hour, query: { offer: 'a b' } }),
  );
  expect(cards).toContain('<h2>Units &lt;of all&gt;, 24 hours: 20 sold</h2>');
  expect(cards).toContain('href="/console/figures.csv?figure=units&amp;range=24h&amp;offer=a+b"');
  const rows = [...cards.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) => row.replace(/<[^>]+>/g, ' '));
  expect(rows[1]?.split(/\s+/).filter(Boolean)).toEqual(['2026-11-30', '20:00', '5', '5']);
  expect(rows[3]?.split(/\s+/).filter(Boolean)).toEqual(['2026-11-30', '18:00', '–', '–']);
});

it('the period comes from the query, and its links keep the rest of the address', () => {
  expect(['24h', '90d', '1y', undefined].map((range) => rangeOf(() => range))).toEqual([
    '24h',
    '90d',
    '7d',
    '7d',
  ]);
  expect(String(rangeLinks('/console/offers/a?region=x', '7d'))).toContain(
    '/console/offers/a?region=x&amp;range=24h',
  );
});

it.each([
  ['USD', 1234.5, '$1,234.50'],
  ['USD per hour', 0.5, '$0.50/h'],
  ['s', 90.4, '90 s'],
  ['units', 1234.4, '1,234'],
  ['count', 2.25, '2.25'],
] as const)('an amount in %s is shown as a reader writes it', (unit, value, text) => {
  expect(toAmount(unit, value)).toBe(text);
});
