import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import { ago, count, facts, given, type Html, html, live } from '../../../operator-kit/console/parts.ts';
import { figures } from '../../operate/figures/figures.ts';
import { listProviders, type ProviderRow } from '../../operate/views/providers.ts';
import type { Page } from '../deps.ts';
import { providerBadge } from '../parts.ts';

/** Each provider: whether it answers, how old its data is, and what failed there. */
export const providersPage: Page = async (
  { store: { read }, providers: knownOf, maxLosses },
  { now, query },
) => {
  const range = rangeOf(query);
  const cards = (provider: string) =>
    figureCards([figures.revenue, figures.failures], {
      reader: read.figures,
      range,
      now,
      filter: { subject: provider },
      query: { provider },
    });
  const providers = await listProviders(read, { known: knownOf(), maxLosses, now });
  return {
    title: 'Providers',
    body: html`<div class="head"><h1>Providers</h1><span class="soft">as this server sees them</span>${rangeLinks('/console/providers', range)}</div>
${providers.map(async (row) => html`${live(`provider-${row.provider}`, oneProvider(row, now))}${await cards(row.provider)}`)}`,
  };
};

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
