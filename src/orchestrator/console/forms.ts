import { alarmKinds } from '../model/alarm.ts';
import type { Actor } from '../model/operator.ts';
import { acknowledgeAlarms } from '../operate/acknowledge.ts';
import type { ConsoleDeps } from './deps.ts';

/** What a form was sent with; whose session it is, is checked. */
export interface FormRequest {
  actor: Actor;
  field: (name: string) => string | undefined;
}

/** Does what a form asks for; returns the page that is shown next. What it throws is shown as the reason. */
type Action = (deps: ConsoleDeps, request: FormRequest) => Promise<string>;

const acknowledge: Action = async (deps, { actor, field }) => {
  const kind = alarmKinds.find((name) => name === field('kind'));
  const subject = field('subject');
  if (kind !== undefined && subject !== undefined) await acknowledgeAlarms(deps, actor, { kind, subject });
  return '/console/alarms';
};

/** Every form below `/console`, by where it is sent. */
export const forms: readonly (readonly [path: string, action: Action])[] = [
  ['/alarms/acknowledge', acknowledge],
];
