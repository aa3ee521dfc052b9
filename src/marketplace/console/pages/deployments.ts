import { usdToDollars } from '../../../contract/values.ts';
import { actionForm, actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  type Column,
  choice,
  clockTime,
  facts,
  given,
  type Html,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { deploymentStatuses } from '../../contract/deployment.ts';
import { cleanUpLost } from '../../operate/actions.ts';
import { restartDeployment, stopDeployment, terminateDeployment } from '../../operate/orders.ts';
import {
  type DeploymentDetail,
  type DeploymentRow,
  listDeployments,
  readDeployment,
  statusFilterSchema,
} from '../../operate/views/deployments.ts';
import { pageAfter } from '../../operate/views/pages.ts';
import type { Page } from '../deps.ts';
import { billLink, deploymentLink, statusBadge, teamLink } from '../parts.ts';

const MAX_TEXT = 200;
const PATH = '/console/deployments';

/** The deployments of all teams, with a text search and filters, page by page. */
export const deploymentsPage: Page = async ({ store: { read }, providers }, { query, now }) => {
  const status = statusFilterSchema.safeParse(query('status')).data;
  const wanted = {
    q: query('q')?.slice(0, MAX_TEXT),
    status: status === 'active' ? undefined : status,
    provider: query('provider'),
    team: query('team'),
  };
  const after = query('after');
  const { deployments, next } = await listDeployments(read, {
    text: wanted.q,
    // A text search also covers ended deployments.
    status: status ?? (wanted.q === undefined ? 'active' : 'all'),
    providerId: wanted.provider,
    teamId: wanted.team,
    after: pageAfter(after),
  });
  return {
    title: 'Deployments',
    body: html`<div class="head"><h1>Deployments</h1><span class="soft">all teams, newest first</span></div>
<form class="card filter" action="${PATH}">
<label class="field grow"><span>Id, name, address, failure or name at the provider</span><input type="search" name="q" value="${wanted.q ?? ''}"></label>
${choice('status', 'Status', ['all', ...deploymentStatuses], wanted.status, undefined, 'not ended')}
${choice('provider', 'Provider', [...providers().keys()], wanted.provider)}
${wanted.team === undefined ? '' : choice('team', 'Team', [wanted.team], wanted.team)}
<button class="primary">Find</button><a class="button" href="${PATH}">Clear</a></form>
${live('deployments', table(columns, deployments, 'No deployments found.', now))}
<nav class="pager" aria-label="Pages of the list">
${after === undefined ? '' : html`<a class="button" href="${withQuery(PATH, wanted)}">« First page</a>`}
${next === null ? '' : html`<a class="button" rel="next" href="${withQuery(PATH, { ...wanted, after: next })}">Next »</a>`}
</nav>`,
  };
};

const columns: readonly Column<DeploymentRow>[] = [
  { head: 'Status', cell: ({ status }) => statusBadge(status) },
  {
    head: 'Deployment',
    cell: ({ id, name, failure_reason: reason }) =>
      html`${deploymentLink(id)}<span class="why">${named(name)}</span>${reason === null ? '' : html`<span class="why">${reason}</span>`}`,
  },
  {
    head: 'Offer and region',
    cell: ({ offer, region }) =>
      html`<span class="nowrap">${named(offer)}</span><span class="why">${named(region)}</span>`,
  },
  'provider',
  { head: 'Team', cell: ({ team_id: team }) => teamLink(team) },
  'usd_per_hour',
  'created_at',
  'confirmed_at',
];

/** The details of one deployment, with a link to its bill. */
export const deploymentPage: Page = async ({ store: { read } }, { params, now, session }) => {
  const found = await readDeployment(read, params['id'] ?? '', now);
  if (found === null) return null;
  const { id, status, name, failure_reason: reason, failure_details: details } = found;
  const times = [
    ['Created', found.created_at],
    ['Started', found.started_at],
    ['Stopped', found.paused_at],
    ['Ended', found.ended_at],
    ['Confirmed by the provider', found.confirmed_at],
  ] as const;
  return {
    title: id,
    body: html`<div class="head" id="head" data-live><h1 class="mono">${id}</h1>${statusBadge(status)}<span class="soft">${named(name)}</span></div>
${live('why', reason === null ? '' : html`<div class="notice bad"><h2>Failed: ${reason}</h2><p>${given(details)}</p></div>`, '')}
${live('orders', orderLinks(found), '')}
${live('lost', found.lost ? lostNotice(found, session.csrf) : '', '')}
<div class="columns">
${live(
  'what',
  html`<h2>Details</h2>${facts([
    ['Team', teamLink(found.team_id)],
    ['User', found.user_id],
    ['Offer', named(found.offer)],
    ['Region', named(found.region)],
    ['GPU', given(found.gpu)],
    ['Instance type', found.instance_type],
    ['SSH', found.endpoint === null ? 'no address yet' : html`<code>${given(found.endpoint)}</code>`],
    ['SSH proof', given(found.ssh)],
    ['Price', `${usdToDollars(found.usd_per_hour)} per hour`],
    ['Cost so far', html`${usdToDollars(found.cost_usd)} ${billLink(id, 'rate by rate')}`],
  ])}`,
)}
${live(
  'provider',
  html`<h2>At the provider</h2>${facts([
    ['Provider', found.provider],
    ['Instance', html`<code>${given(found.provider_instance_id ?? 'none yet')}</code>`],
    ['Name there', html`<code>${named(found.provider_name)}</code>`],
    ['Launch', found.launch],
    ['Request', given(found.request_id)],
    ['Change in progress', given(found.action)],
    ['To be confirmed', given(found.suspicion)],
    ['Clean-up', found.cleanup],
  ])}`,
)}
</div>
${live(
  'times',
  html`<h2>When</h2>${facts(
    times.map(([what, at]) => [
      what,
      at === null ? '' : html`${clockTime(Date.parse(at))} <span class="soft">${ago(at, now)}</span>`,
    ]),
  )}`,
)}`,
  };
};

function orderLinks({ id, status }: DeploymentDetail): Html | '' {
  const of = { deploymentId: id };
  const terminate = actionLink(terminateDeployment, 'Terminate', of);
  if (status === 'stopped') return html`<p>${terminate}</p>`;
  if (status !== 'running') return '';
  return html`<p>${actionLink(stopDeployment, 'Stop', of)}${actionLink(restartDeployment, 'Restart', of)}${terminate}</p>`;
}

function lostNotice({ id, provider, provider_instance_id: instance }: DeploymentDetail, csrf: string): Html {
  return html`<div class="notice wait"><h2>Instance lost</h2>
<p>${provider} answered 404 for its instance <code>${given(instance)}</code>. If the instance reappears, it is kept and may cost money. The button deletes it with its data; so does <code>berth marketplace losses clean-up ${id}</code>.</p>
${actionForm(cleanUpLost, csrf, { deploymentId: id }, { buttonClass: 'danger' })}</div>`;
}
