import { usdToDollars } from '../../../contract/values.ts';
import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import { type Column, count, figure, html, live, table } from '../../../operator-kit/console/parts.ts';
import { activeStatuses } from '../../contract/deployment.ts';
import { figures as overTime } from '../../operate/figures/figures.ts';
import { listProviders, type ProviderRow } from '../../operate/views/providers.ts';
import { readStatus } from '../../operate/views/status.ts';
import { firstToRunOut } from '../../operate/views/teams.ts';
import type { Page } from '../deps.ts';
import { providerBadge, toneOf } from '../parts.ts';
import { burnColumns } from './teams.ts';

const TEAMS_SHOWN = 8;
const CAUSES_SHOWN = 8;
/** A mail that waits longer was refused, or no mail server answers. The first retry comes after a minute. */
const LATE_MAIL_MS = 5 * 60_000;

export const overviewPage: Page = async (
  { store: { read }, providers: knownOf, maxLosses },
  { now, query },
) => {
  const range = rangeOf(query);
  const cards = (...specs: Parameters<typeof figureCards>[0]) =>
    figureCards(specs, { reader: read.figures, range, now });
  const spending = await read.teams.spending(now);
  const [status, providers, teams] = await Promise.all([
    readStatus(read, spending, now),
    listProviders(read, { known: knownOf(), maxLosses, now }),
    firstToRunOut(read, spending, TEAMS_SHOWN, now),
  ]);
  const { mails, books } = status;
  const { oldest_created_at: writtenAt } = mails;
  const isLate = writtenAt !== null && Date.parse(writtenAt) < now - LATE_MAIL_MS;
  const figures = html`${activeStatuses.map((one) => {
    const n = status.deployments[one] ?? 0;
    const href = `/console/deployments?status=${one}`;
    return figure(count(n), one, { href, tone: n > 0 ? toneOf(one) : 'none' });
  })}
${figure(usdToDollars(status.teams.burn_usd_per_hour), 'an hour, before discounts')}
${figure(count(status.teams.spending), `of ${count(status.teams.count)} teams are billed`, { href: '/console/teams' })}
${figure(count(mails.waiting), 'mails waiting', { href: '/console/mails?state=waiting', tone: isLate ? 'wait' : undefined })}
${mails.given_up === 0 ? '' : figure(count(mails.given_up), 'mails given up in 24 hours', { href: '/console/mails?state=given_up', tone: 'bad' })}
${figure(count(status.losses_held), 'losses held', { href: '/console/providers', tone: status.losses_held > 0 ? 'bad' : undefined })}
${figure(books.findings === null ? '–' : count(books.findings), 'findings in the books', {
  href: '/console/books',
  tone: books.findings === null ? undefined : books.findings > 0 ? 'bad' : 'good',
})}`;
  return {
    title: 'Overview',
    body: html`<div class="head"><h1>Overview</h1>${rangeLinks('/console', range)}</div>
${live('figures', figures, 'figures')}
${await cards(overTime.revenue, overTime.burn)}
<div class="columns">
${live('providers', html`<h2>Providers</h2>${table(providerColumns, providers, 'No provider is configured.', now)}`)}
${live('causes', html`<h2>Failed deployments by cause, 24 hours</h2>${table(['reason', 'provider', 'count'], causesOf(providers), 'No deployment failed.')}`)}
</div>
${await cards(overTime.launches, overTime.badDebt)}
${live('teams', html`<h2>Teams whose balance runs out first</h2>${table(burnColumns, teams, 'No team is billed now.')}`)}`,
  };
};

const providerColumns: readonly Column<ProviderRow>[] = [
  {
    head: 'Provider',
    cell: ({ provider }) =>
      html`<a href="/console/deployments?provider=${encodeURIComponent(provider)}">${provider}</a>`,
  },
  { head: 'State', cell: ({ state }) => providerBadge(state) },
  'running',
  'confirmed_until',
];

type Cause = ProviderRow['failures'][number] & { provider: string };

function causesOf(providers: readonly ProviderRow[]): Cause[] {
  return providers
    .flatMap(({ provider, failures }) => failures.map((failure) => ({ provider, ...failure })))
    .toSorted((a, b) => b.count - a.count)
    .slice(0, CAUSES_SHOWN);
}
