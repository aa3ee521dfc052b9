import {
  ago,
  badge,
  type Column,
  count,
  facts,
  type Html,
  html,
  live,
  table,
} from '../../../operator-kit/console/parts.ts';
import type { PageExtras } from '../../../operator-kit/console/view-pages.ts';
import { accountMeanings, type Books } from '../../operate/views/books.ts';

type Section = NonNullable<PageExtras<unknown>['above']>;
type Verdict = NonNullable<Books['verified']>;

/** A link to the months and a form for the bill of any resource, below the bookings. */
export const billForm: Section = () =>
  html`<p><a href="/console/statements">Providers, revenue and bad debt by month</a></p>
<form class="card filter" action="/console/bills"><label class="field grow"><span>Explain the bill of a deployment or volume (id)</span><input name="id" required></label><button class="primary">Explain</button></form>`;

/** The result of the last verification, above the bookings. */
export const verdictSection: Section = (_deps, { now }, reply) =>
  live('verdict', toVerdict((reply as Books).verified, now));

function toVerdict(verified: Verdict | null, now: number): Html {
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

const accountColumns: readonly Column<Verdict['accounts'][number]>[] = [
  'account',
  'amount_usd',
  { head: 'Meaning', cell: ({ account }) => accountMeanings[account] ?? '' },
];
