import { usdToDollars } from '../../../contract/values.ts';
import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import { count, figure, html, live, table } from '../../../operator-kit/console/parts.ts';
import { listTable } from '../../../operator-kit/console/view-pages.ts';
import { activeStatuses } from '../../contract/deployment.ts';
import { figures as overTime } from '../../operate/figures/figures.ts';
import { toneOf } from '../../operate/views/deployments.ts';
import { type ProviderRow, providersView } from '../../operate/views/providers.ts';
import { statusView } from '../../operate/views/status.ts';
import { teamsView } from '../../operate/views/teams.ts';
import type { Page } from '../deps.ts';

const TEAMS_SHOWN = 8;
const CAUSES_SHOWN = 8;
/** A mail that waits longer was refused, or no mail server answers. The first retry comes after a minute. */
const LATE_MAIL_MS = 5 * 60_000;

export const overviewPage: Page = async (deps, { now, query }) => {
  const range = rangeOf(query);
  const cards = (...specs: Parameters<typeof figureCards>[0]) =>
    figureCards(specs, { reader: deps.store.read.figures, range, now });
  const status = await statusView.read(deps, {});
  const { mails, books, providers } = status;
  const teams = status.first_to_run_out.slice(0, TEAMS_SHOWN);
  const { oldest_created_at: writtenAt } = mails;
  const isLate = writtenAt !== null && Date.parse(writtenAt) < now - LATE_MAIL_MS;
  const figures = html`${activeStatuses.map((one) => {
    const n = status.deployments[one] ?? 0;
    const href = `/console/deployments?status=${one}`;
    return figure(count(n), one, { href, tone: n > 0 ? toneOf({ status: one }) : 'none' });
  })}
${figure(usdToDollars(status.teams.burn_usd_per_hour), 'an hour, before discounts')}
${figure(count(status.teams.spending), `of ${count(status.teams.count)} teams are billed`, { href: '/console/teams' })}
${figure(count(mails.waiting), 'mails waiting', { href: '/console/mails?state=waiting', tone: isLate ? 'wait' : undefined })}
${mails.given_up === 0 ? '' : figure(count(mails.given_up), 'mails given up in 24 hours', { href: '/console/mails?state=given_up', tone: 'bad' })}
${figure(count(status.losses_held), 'losses held', { href: '/console/losses', tone: status.losses_held > 0 ? 'bad' : undefined })}
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
${live('providers', html`<h2>Providers</h2>${listTable(providersView, providers, now)}`)}
${live('causes', html`<h2>Failed deployments by cause, 24 hours</h2>${table(['reason', 'provider', 'count'], causesOf(providers), 'No deployment failed.')}`)}
</div>
${await cards(overTime.launches, overTime.badDebt)}
${live('teams', html`<h2>Teams whose balance runs out first</h2>${listTable(teamsView, teams, now)}`)}`,
  };
};

type Cause = ProviderRow['failures'][number] & { provider: string };

function causesOf(providers: readonly ProviderRow[]): Cause[] {
  return providers
    .flatMap(({ provider, failures }) => failures.map((failure) => ({ provider, ...failure })))
    .toSorted((a, b) => b.count - a.count)
    .slice(0, CAUSES_SHOWN);
}
