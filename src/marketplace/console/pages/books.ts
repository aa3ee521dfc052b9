import { usdToDollars } from '../../../contract/values.ts';
import {
  ago,
  badge,
  type Column,
  clockTime,
  count,
  facts,
  type Html,
  html,
  live,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import type { Bill } from '../../ledger/explain-bill.ts';
import { accountMeanings, type BookingRow, explainBillOf, readBooks } from '../../operate/views/books.ts';
import { pageAfter } from '../../operate/views/pages.ts';
import type { Page } from '../deps.ts';
import { deploymentLink, teamLink } from '../parts.ts';

const PATH = '/console/books';

type Verdict = Awaited<ReturnType<typeof readBooks>>['verified'];

/** The books page: the last verification, the sums, and the bookings other than usage. */
export const booksPage: Page = async ({ store: { read } }, { query, now }) => {
  const after = pageAfter(query('after'));
  const { verified, booked, next } = await readBooks(read, { after });
  return {
    title: 'Books',
    body: html`<div class="head"><h1>Books</h1><a href="/console/statements">providers, revenue and bad debt by month</a></div>
${live('verdict', verdictSection(verified, now))}
${live('booked', html`<h2>Payments, grants and corrections</h2>${table(bookingColumns, booked, 'No bookings.')}`)}
${next === null ? '' : html`<nav class="pager"><a class="button" rel="next" href="${withQuery(PATH, { after: next })}">Older »</a></nav>`}
<form class="card filter" action="/console/bills"><label class="field grow"><span>Explain the bill of a deployment or volume (id)</span><input name="id" required></label><button class="primary">Explain</button></form>`,
  };
};

function verdictSection(verified: Verdict, now: number): Html {
  if (verified === null)
    return html`<h2>Never checked</h2><p><code>berth marketplace verify-ledger</code> checks every entry in a separate process; its result is shown here.</p>`;
  const { at, findings, counts, accounts } = verified;
  const all = counts['findings'] ?? findings.length;
  return html`<div class="head"><h2>Checked ${ago(at, now)}</h2>${badge(all === 0 ? 'no findings' : `${all} findings`, all === 0 ? 'good' : 'bad')}</div>
${facts([
  ['Teams', count(counts['teams'] ?? 0)],
  ['Deployments and volumes', count(counts['subjects'] ?? 0)],
  ['Segments', count(counts['segments'] ?? 0)],
  ['Slices', count(counts['slices'] ?? 0)],
])}
${findings.length === 0 ? '' : table(['id', 'problem'], findings, '')}
${table(accountColumns, accounts, '')}`;
}

const accountColumns: readonly Column<NonNullable<Verdict>['accounts'][number]>[] = [
  'account',
  'amount_usd',
  { head: 'Meaning', cell: ({ account }) => accountMeanings[account] ?? '' },
];

const bookingColumns: readonly Column<BookingRow>[] = [
  'at',
  'kind',
  { head: 'Team', cell: ({ team_id: team }) => teamLink(team) },
  'amount_usd',
  'memo',
  'reference',
];

/** The bill of a deployment or a volume, by rate and by day. */
export const billPage: Page = async ({ store: { read } }, { params, query, now }) => {
  const id = params['id'] ?? query('id') ?? '';
  const bill = await explainBillOf(read, id, { byDay: true, now });
  if (bill === null) return null;
  return {
    title: `Bill of ${bill.id}`,
    body: html`<div class="head"><h1>Bill of <span class="mono">${bill.id}</span></h1>${bill.id.startsWith('dep-') ? deploymentLink(bill.id) : ''}</div>
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
