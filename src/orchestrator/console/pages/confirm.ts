import { counted } from '../../../contract/counted.ts';
import type { PageRequest } from '../../../operators/console/deps.ts';
import { csrfField } from '../../../operators/console/layout.ts';
import { count, cutName, given, type Html, html } from '../../../operators/console/parts.ts';
import { cordonKinds } from '../../model/cordon.ts';
import { type Closing, closeAccount } from '../../operate/actions/close-account.ts';
import { nameSubject } from '../../operate/actions/cordons.ts';
import {
  forceDestroyInstance,
  type Plan,
  releaseInstance,
  retryInstance,
} from '../../operate/actions/instances.ts';
import { thawPlatform } from '../../operate/actions/losses.ts';
import { ActionRefused } from '../../operate/actions/refused.ts';
import type { ConsoleDeps, Page } from '../deps.ts';
import { instanceLink, statusBadge } from '../instance-parts.ts';

export const HOUR_MS = 3_600_000;
/** The longest cordon: a year. */
export const MAX_HOURS = 8_760;
/** How long the losses of a thawed platform are accepted, in milliseconds. */
export const THAW_MS = 60 * 60_000;

/** @throws {ActionRefused} */
export function toHours(text: string | undefined): number | null {
  if (text === undefined) return null;
  const hours = Number(text);
  if (hours > 0 && hours <= MAX_HOURS) return hours;
  throw new ActionRefused(`The hours must be a number above 0 and at most ${MAX_HOURS}, or empty.`);
}

/** A dry run of an action, with the button that carries it out. */
interface DryRun {
  title: string;
  /** The effect of the action. */
  effect: Html;
  /** The path that the form is sent to. */
  to: string;
  fields: Record<string, string | undefined>;
  button: string;
  isDangerous?: boolean;
  /** Whether the form asks for a reason. */
  asksReason?: boolean;
  back: string;
}

type PlanAction = (deps: ConsoleDeps, request: PageRequest) => Promise<DryRun>;

/** The effect of an action, and the button that carries it out. This page changes nothing. */
export const confirmPage: Page = async (deps, request) => {
  const plan = plans.get(request.query('action') ?? '');
  if (plan === undefined) return null;
  const { title, effect, to, fields, button, isDangerous, asksReason, back } = await plan(deps, request);
  return {
    title,
    body: html`<h1>${title}</h1>
<div class="notice ${isDangerous ? 'bad' : 'wait'}"><h2>What would happen</h2>${effect}<p class="label">This is a dry run: nothing has changed.</p></div>
<form class="card row" method="post" action="${to}">${csrfField(request.session.csrf)}
${Object.entries(fields).map(([name, value]) =>
  value === undefined ? '' : html`<input type="hidden" name="${name}" value="${value}">`,
)}
${asksReason ? html`<label class="field grow"><span>Reason (for the audit log)</span><input name="reason" maxlength="200"></label>` : ''}
<button class="${isDangerous ? 'danger' : 'primary'}">${button}</button><a class="button" href="${back}">Cancel</a></form>`,
  };
};

/** An actor for the dry run. A dry run writes no row of the audit log. */
function toDryRun({ session, query }: PageRequest) {
  const actor = { name: session.operator, source: 'console', address: null } as const;
  return { actor, id: query('id') ?? '' };
}

function tellPlan({ instance, status, effect, step }: Plan): Html {
  const problem = step?.lastError ?? null;
  return html`<p>${instanceLink(instance)} ${statusBadge(status)}</p><p>Then ${effect}.</p>${
    problem === null ? '' : html`<p class="soft">Last attempt: ${given(problem)}</p>`
  }`;
}

const retry: PlanAction = async (deps, request) => {
  const { actor, id } = toDryRun(request);
  const plan = await retryInstance(deps, actor, { id, isDone: false });
  const back = `/console/instances/${encodeURIComponent(id)}`;
  return {
    title: 'Try now',
    effect: tellPlan(plan),
    to: '/console/instances/retry',
    fields: { id },
    button: 'Try now',
    back,
  };
};

const release: PlanAction = async (deps, request) => {
  const { actor, id } = toDryRun(request);
  const plan = await releaseInstance(deps, actor, { id, isDone: false });
  return {
    title: 'Release a kept machine',
    effect: tellPlan(plan),
    to: '/console/instances/release',
    fields: { id },
    button: 'Remove it',
    isDangerous: true,
    back: `/console/instances/${encodeURIComponent(id)}`,
  };
};

const destroy: PlanAction = async (deps, request) => {
  const { actor, id } = toDryRun(request);
  const plan = await forceDestroyInstance(deps, actor, { id, isDone: false, reason: null });
  return {
    title: 'Destroy an instance',
    effect: tellPlan(plan),
    to: '/console/instances/destroy',
    fields: { id },
    button: 'Destroy it',
    isDangerous: true,
    asksReason: true,
    back: `/console/instances/${encodeURIComponent(id)}`,
  };
};

const thaw: PlanAction = async (deps, request) => {
  const { actor } = toDryRun(request);
  const platform = request.query('platform') ?? '';
  const { problems, effect } = await thawPlatform(deps, actor, { platform, forMs: THAW_MS, isDone: false });
  return {
    title: `Thaw ${platform}`,
    effect: html`${problems.map((problem) => html`<p>${given(problem)}</p>`)}<p>Then ${effect}. The listing is accepted for an hour.</p>`,
    to: '/console/platforms/thaw',
    fields: { platform },
    button: 'The machines are gone: thaw',
    isDangerous: true,
    back: '/console/platforms',
  };
};

const close =
  (closing: Closing): PlanAction =>
  async (deps, request) => {
    const { actor } = toDryRun(request);
    const named = request.query('account') ?? '';
    const order = { account: named, closing, drain: true, isDone: false };
    const { account, id, instances, volumes, effect } = await closeAccount(deps, actor, order);
    const verb = closing === 'disable' ? 'Disable' : 'Delete';
    return {
      title: `${verb} account ${cutName(account)}`,
      effect: html`<p>Account ${given(cutName(account))}: then ${effect}.</p>`,
      to: `/console/accounts/${closing}`,
      // If the account has no resources, `drain` is not set: resources created meanwhile were not shown, so the action
      // is refused.
      fields: { account: id, drain: instances + volumes > 0 ? 'yes' : undefined },
      button: `${verb} it`,
      isDangerous: true,
      back: '/console/accounts',
    };
  };

const cordon: PlanAction = async ({ sold, store: { read } }, { query }) => {
  const kind = cordonKinds.find((one) => one === query('kind'));
  const name = query('name');
  if (kind === undefined || name === undefined) throw new ActionRefused('Choose what to cordon.');
  const platform = query('platform');
  const subject = nameSubject(sold, { kind, name, ...(platform !== undefined && { platform }) });
  const running = await read.instances.countFound({
    ...(kind === 'offer' ? { offerId: name } : { [kind]: name }),
    platform: subject.platform ?? undefined,
  });
  const hours = toHours(query('hours'));
  const isMaintenance = query('maintenance') === 'yes';
  return {
    title: `Cordon ${kind} ${name}`,
    effect: html`<p>No new machine is placed on ${kind} <strong>${name}</strong> from now on${
      subject.platform === null || kind === 'platform' ? '' : html` on ${subject.platform}`
    }, ${hours === null ? 'until the cordon is removed' : `for ${counted(hours, 'hour')}`}.</p>
<p>${running === 0 ? 'No instances are running there.' : `${count(running)} instances are running there and are not affected.`}</p>
${isMaintenance ? html`<p>Clients see it in the catalog as maintenance, with the reason.</p>` : ''}`,
    to: '/console/cordons/add',
    fields: {
      kind,
      name,
      platform,
      hours: hours?.toString(),
      reason: query('reason'),
      maintenance: isMaintenance ? 'yes' : undefined,
    },
    button: 'Cordon it',
    back: '/console/cordons',
  };
};

/** The plans, by the value of `action` in the query. */
const plans: ReadonlyMap<string, PlanAction> = new Map([
  ['retry', retry],
  ['release', release],
  ['destroy', destroy],
  ['thaw', thaw],
  ['cordon', cordon],
  ['disable', close('disable')],
  ['delete', close('delete')],
]);
