import type { FormRequest } from '../../operators/console/deps.ts';
import { alarmKinds } from '../model/alarm.ts';
import { cordonKinds } from '../model/cordon.ts';
import { acknowledgeAlarms } from '../operate/acknowledge.ts';
import { type Closing, closeAccount } from '../operate/actions/close-account.ts';
import {
  cancelMaintenance,
  cordon,
  type NamedSubject,
  planMaintenance,
  uncordon,
} from '../operate/actions/cordons.ts';
import { forceDestroyInstance, releaseInstance, retryInstance } from '../operate/actions/instances.ts';
import { thawPlatform } from '../operate/actions/losses.ts';
import { ActionRefused } from '../operate/actions/refused.ts';
import { requestReload } from '../operate/actions/reload.ts';
import type { Action } from './deps.ts';
import { HOUR_MS, THAW_MS, toHours } from './pages/confirm.ts';

const acknowledge: Action = async (deps, { actor, field }) => {
  const kind = alarmKinds.find((name) => name === field('kind'));
  const subject = field('subject');
  if (kind !== undefined && subject !== undefined) await acknowledgeAlarms(deps, actor, { kind, subject });
  return '/console/alarms';
};

const retry: Action = async (deps, { actor, field }) => {
  const { instance } = await retryInstance(deps, actor, { id: field('id') ?? '', isDone: true });
  return `/console/instances/${instance}`;
};

const release: Action = async (deps, { actor, field }) => {
  const { instance } = await releaseInstance(deps, actor, { id: field('id') ?? '', isDone: true });
  return `/console/instances/${instance}`;
};

const destroy: Action = async (deps, { actor, field }) => {
  const order = { id: field('id') ?? '', isDone: true, reason: field('reason') ?? null };
  const { instance } = await forceDestroyInstance(deps, actor, order);
  return `/console/instances/${instance}`;
};

const thaw: Action = async (deps, { actor, field }) => {
  await thawPlatform(deps, actor, { platform: field('platform') ?? '', forMs: THAW_MS, isDone: true });
  return '/console/platforms';
};

const addCordon: Action = async (deps, { actor, field }) => {
  const now = deps.clock.now();
  const hours = toHours(field('hours'));
  const until = hours === null ? null : now + hours * HOUR_MS;
  const request = { subject: subjectOf(field), until, reason: field('reason') ?? null };
  if (field('maintenance') === 'yes') await planMaintenance(deps, actor, { ...request, since: now });
  else await cordon(deps, actor, request);
  return '/console/cordons';
};

const removeCordon: Action = async (deps, { actor, field }) => {
  await uncordon(deps, actor, subjectOf(field));
  return '/console/cordons';
};

const cancel: Action = async (deps, { actor, field }) => {
  await cancelMaintenance(deps, actor, field('id') ?? '');
  return '/console/cordons';
};

const reload: Action = async (deps, { actor }) => {
  await requestReload(deps, actor);
  return '/console/cordons';
};

const close =
  (closing: Closing): Action =>
  async (deps, { actor, field }) => {
    const drain = field('drain') === 'yes';
    await closeAccount(deps, actor, { account: field('account') ?? '', closing, drain, isDone: true });
    return '/console/accounts';
  };

/** Changes nothing, so no row of the audit log is written. */
const examine: Action = async ({ doctor }) => {
  await doctor.look();
  return '/console/doctor';
};

/** @throws {ActionRefused} */
function subjectOf(field: FormRequest['field']): NamedSubject {
  const kind = cordonKinds.find((one) => one === field('kind'));
  const name = field('name');
  const platform = field('platform');
  if (kind === undefined || name === undefined) throw new ActionRefused('Choose what to cordon.');
  return { kind, name, ...(platform !== undefined && { platform }) };
}

/** Every form below `/console`, by the path that it is sent to. */
export const forms: readonly (readonly [path: string, action: Action])[] = [
  ['/alarms/acknowledge', acknowledge],
  ['/instances/retry', retry],
  ['/instances/release', release],
  ['/instances/destroy', destroy],
  ['/platforms/thaw', thaw],
  ['/cordons/add', addCordon],
  ['/cordons/remove', removeCordon],
  ['/cordons/cancel', cancel],
  ['/accounts/disable', close('disable')],
  ['/accounts/delete', close('delete')],
  ['/reload', reload],
  ['/doctor', examine],
];
