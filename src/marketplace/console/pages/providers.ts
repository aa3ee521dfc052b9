import { actionLink, actionPath } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  type Column,
  count,
  facts,
  given,
  type Html,
  html,
  live,
  named,
  table,
} from '../../../operator-kit/console/parts.ts';
import { listPauses, pauseSales, resumeSales } from '../../operate/sales.ts';
import { listProviders, type ProviderRow } from '../../operate/views/providers.ts';
import type { Page } from '../deps.ts';
import { providerBadge } from '../parts.ts';

/** Each provider: whether it answers, how old its data is, and what failed there. */
export const providersPage: Page = async ({ store: { read }, providers: knownOf, maxLosses }, { now }) => {
  const [providers, pauses] = await Promise.all([
    listProviders(read, { known: knownOf(), maxLosses, now }),
    listPauses(read, now),
  ]);
  return {
    title: 'Providers',
    body: html`<div class="head"><h1>Providers</h1><span class="soft">as this server sees them</span></div>
${live('pauses', pauses.length === 0 ? '' : pausesCard(pauses), '')}
${pauseForm(providers)}
${providers.map((provider) => live(`provider-${provider.provider}`, oneProvider(provider, now)))}`,
  };
};

type Pauses = Awaited<ReturnType<typeof listPauses>>;

const pauseColumns: readonly Column<Pauses[number]>[] = [
  'provider',
  { head: 'Region', cell: ({ region }) => named(region ?? 'all') },
  { head: 'Offer', cell: ({ offer }) => named(offer ?? 'all, and volumes') },
  { head: 'Reason', cell: ({ reason }) => given(reason) },
  { head: 'Until', cell: ({ until }) => until ?? 'it is resumed' },
  'by',
  {
    head: 'Action',
    cell: ({ provider, region, offer }) => actionLink(resumeSales, 'Resume', { provider, region, offer }),
  },
];

function pausesCard(pauses: Pauses): Html {
  return html`<div class="notice wait"><h2>Sales paused</h2></div>${table(pauseColumns, pauses, '')}`;
}

function pauseForm(providers: readonly ProviderRow[]): Html {
  const ids = providers.map(({ provider }) => provider);
  if (ids.length === 0) return html``;
  return html`<form class="card filter" action="/console${actionPath(pauseSales.name)}">
<label class="field"><span>Provider</span><select name="provider">${ids.map((id) => html`<option>${id}</option>`)}</select></label>
<label class="field"><span>Region (empty: all)</span><input name="region"></label>
<label class="field"><span>Offer (empty: all)</span><input name="offer"></label>
<label class="field"><span>Hours (empty: until resumed)</span><input name="hours" type="number" min="1"></label>
<button>Pause sales …</button></form>`;
}

function oneProvider(row: ProviderRow, now: number): Html {
  const { provider, state, problems, failures, made, failed, offers } = row;
  const link = `/console/deployments?provider=${encodeURIComponent(provider)}`;
  return html`<div class="head"><h2>${provider}</h2>${providerBadge(state)}<a href="${link}">its deployments</a></div>
${problems.length === 0 ? '' : html`<div class="notice bad"><ul>${problems.map((problem) => html`<li>${given(problem)}</li>`)}</ul>${whatToDo(row)}</div>`}
${facts([
  [
    'Deployments',
    `${count(row.running)} running, ${count(row.deploying)} deploying, ${count(row.stopped)} stopped`,
  ],
  ['Volumes', count(row.volumes)],
  ['Confirmed until', ago(row.confirmed_until, now) || 'nothing confirmed yet'],
  ['Catalog read', ago(row.catalog_read_at, now) || 'never'],
  ['TLS certificate expires', ago(row.certificate_ends_at, now)],
  ['Offers', offers === null ? '' : `${count(offers)}, ${count(row.offers_in_stock ?? 0)} in stock`],
  ['ONLINE, waiting for SSH', count(row.waiting_for_ssh)],
  ['To be synced', count(row.to_sync)],
  ['Created in 24 hours', `${count(made)}, ${count(failed)} of them failed`],
  ['Failure reasons', failures.map(({ reason, count: n }) => `${reason} ${n}`).join(', ')],
  ['Losses', `${count(row.losses)} ended (limit ${count(row.losses_cap)}), ${count(row.losses_held)} held`],
  ['Losses accepted until', ago(row.losses_accepted_until, now)],
])}`;
}

function whatToDo({ provider, losses_held: held }: ProviderRow): Html {
  return held === 0
    ? html`<p>Its last known state is kept until it answers again. To test its key and address: <code>berth marketplace providers check</code></p>`
    : html`<p>Check that the key and base_url belong to our account. If the instances are really lost: <code>berth marketplace losses accept ${provider}</code></p>`;
}
