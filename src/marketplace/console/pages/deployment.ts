import { usdToDollars } from '../../../contract/values.ts';
import { actionForm, actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  badge,
  clockTime,
  facts,
  given,
  type Html,
  html,
  live,
  named,
} from '../../../operator-kit/console/parts.ts';
import type { Session } from '../../../operator-kit/console/sessions.ts';
import { allows } from '../../../operator-kit/model.ts';
import { cleanUpLost } from '../../operate/actions.ts';
import { restartDeployment, stopDeployment, terminateDeployment } from '../../operate/orders.ts';
import { type DeploymentDetail, readDeployment, toneOf } from '../../operate/views/deployments.ts';
import type { Page } from '../deps.ts';

/** The details of one deployment, with a link to its bill. */
export const deploymentPage: Page = async ({ store: { read }, providers }, { params, now, session }) => {
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
    body: html`<div class="head" id="head" data-live><h1 class="mono">${id}</h1>${badge(status, toneOf(found))}<span class="soft">${named(name)}</span></div>
${live('why', reason === null ? '' : html`<div class="notice bad"><h2>Failed: ${reason}</h2><p>${given(details)}</p></div>`, '')}
${live('orders', allows(session.role, stopDeployment.needs) ? orderLinks(found) : '', '')}
${live('lost', found.lost ? lostNotice(found, session, providers().has(found.provider)) : '', '')}
<div class="columns">
${live(
  'what',
  html`<h2>Details</h2>${facts([
    ['Team', html`<a href="/console/teams/${encodeURIComponent(found.team_id)}">${named(found.team_id)}</a>`],
    ['User', found.user_id],
    ['Offer', named(found.offer)],
    ['Region', named(found.region)],
    ['GPU', given(found.gpu)],
    ['Instance type', found.instance_type],
    ['SSH', found.endpoint === null ? 'no address yet' : html`<code>${given(found.endpoint)}</code>`],
    ['SSH proof', given(found.ssh)],
    ['Price', `${usdToDollars(found.usd_per_hour)} per hour`],
    [
      'Cost so far',
      html`${usdToDollars(found.cost_usd)} <a href="/console/bills/${encodeURIComponent(id)}">rate by rate</a>`,
    ],
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
    ['Last change refused', given(found.last_refusal)],
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
  return html`<p>${actionLink(stopDeployment, 'Stop', of)} ${actionLink(restartDeployment, 'Restart', of)} ${terminate}</p>`;
}

function lostNotice(
  { id, provider, provider_instance_id: instance }: DeploymentDetail,
  { csrf, role }: Session,
  isConfigured: boolean,
): Html {
  if (!isConfigured)
    return html`<div class="notice wait"><h2>Instance kept</h2>
<p>Nothing is sent to ${provider}, which is retired or not in the configuration. Its instance <code>${given(instance)}</code> may still cost money: delete it there.</p></div>`;
  const button = actionForm(cleanUpLost, csrf, { deploymentId: id }, { buttonClass: 'danger' });
  return html`<div class="notice wait"><h2>Instance lost</h2>
<p>${provider} answered 404 for its instance <code>${given(instance)}</code>. If the instance reappears, it is kept and may cost money. The button deletes it with its data; so does <code>berth marketplace losses clean-up ${id}</code>.</p>
${allows(role, cleanUpLost.needs) ? button : ''}</div>`;
}
