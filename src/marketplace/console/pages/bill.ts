import { usdToDollars } from '../../../contract/values.ts';
import { linkOfId } from '../../../operator-kit/columns.ts';
import { type Column, clockTime, facts, html, live, table } from '../../../operator-kit/console/parts.ts';
import type { Bill } from '../../ledger/explain-bill.ts';
import { explainBillOf } from '../../operate/views/books.ts';
import type { Page } from '../deps.ts';

/** The bill of a deployment or a volume, by rate and by day. */
export const billPage: Page = async ({ store: { read } }, { params, query, now }) => {
  const id = params['id'] ?? query('id') ?? '';
  const bill = await explainBillOf(read, id, { byDay: true, now });
  if (bill === null) return null;
  const page = linkOfId(bill.id);
  return {
    title: `Bill of ${bill.id}`,
    body: html`<div class="head"><h1>Bill of <span class="mono">${bill.id}</span></h1>${page === undefined ? '' : html`<a href="/console${page}">its deployment</a>`}</div>
${live(
  'sums',
  facts([
    ['Charged to the balance', usdToDollars(bill.taken_usd)],
    ['Used since', usdToDollars(bill.used_since_usd)],
    ['Charged by the provider', bill.provider_usd === null ? 'not known' : usdToDollars(bill.provider_usd)],
    ['Margin', bill.margin_usd === null ? '' : usdToDollars(bill.margin_usd)],
  ]),
)}
${live('rates', html`<h2>Rate by rate</h2>${table(segmentColumns, bill.segments, 'Nothing was billed for it.')}`)}
${live('days', html`<h2>Day by day</h2>${table(['day', 'taken_usd'], daysOf(bill), 'Nothing was charged yet.')}`)}`,
  };
};

const segmentColumns: readonly Column<Bill['segments'][number]>[] = [
  { head: 'From', cell: ({ from }) => clockTime(Date.parse(from)) },
  { head: 'Until', cell: ({ until }) => (until === null ? 'now' : clockTime(Date.parse(until))) },
  'state',
  'hourly_rate_usd',
  { head: 'Discount', cell: ({ discount_percent: percent }) => (percent === 0 ? '' : `${percent} %`) },
  'provider_hourly_rate_usd',
  'taken_usd',
];

/** Sums per day, the newest first. Rates of the same day are added up. */
function daysOf({ segments }: Bill): { day: string; taken_usd: number }[] {
  const sums = new Map<string, number>();
  for (const { day, taken_usd: usd } of segments.flatMap(({ days = [] }) => days))
    sums.set(day, (sums.get(day) ?? 0) + usd);
  return [...sums]
    .map(([day, taken_usd]) => ({ day, taken_usd }))
    .toSorted((a, b) => (a.day < b.day ? 1 : -1));
}
