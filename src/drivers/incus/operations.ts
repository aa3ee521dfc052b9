import type { Step } from '../../orchestrator/model/platform-driver.ts';
import { type Failure, pending } from '../../platform-model/steps.ts';
import type { IncusApi, Operation } from './api.ts';
import { IncusRefusal, toFailure, unlessConflict } from './errors.ts';
import type { Platform } from './platform.ts';

export const POLL_MS = 300;

/** A pending step. By default its phase is the first word of the cookie, such as `make`. */
export function underWay(cookie: string, phase = cookie.split(':', 1)[0]): Step<never> {
  return pending(cookie, POLL_MS, phase);
}

/** The operation that the cookie names. Undefined if it names none, or Incus has forgotten it. */
export async function operationOf(api: IncusApi, cookie: string | null): Promise<Operation | undefined> {
  const id = cookie?.split(':')[1];
  return id === undefined || !/^[0-9a-f-]{36}$/.test(id) ? undefined : api.operation(id);
}

/** The operations on an instance, running ones first. */
export async function operationsOn(api: IncusApi, name: string): Promise<Operation[]> {
  const all = await api.operations();
  return all.filter((one) => isOn(one, name)).sort((a, b) => a.status_code - b.status_code);
}

/** Whether Incus is moving one of these instances, or evacuating a member. `moves`: how such operations are described. */
export async function areMoving(api: IncusApi, names: readonly string[], moves = MOVES): Promise<boolean> {
  return (await api.operations()).some(
    (one) =>
      one.status_code < 200 &&
      (/cluster/i.test(one.description) ||
        (moves.test(one.description) && names.some((name) => isOn(one, name)))),
  );
}

/** The failure of the cookie's operation, if it failed and is of one of these kinds. Of any kind if none is given. */
export async function failureOf(
  api: IncusApi,
  cookie: string | null,
  ...kinds: readonly string[]
): Promise<Failure | undefined> {
  const kind = cookie?.split(':', 1)[0] ?? '';
  if (kinds.length > 0 && !kinds.includes(kind)) return undefined;
  const operation = await operationOf(api, cookie);
  if (operation === undefined || operation.status_code < 400) return undefined;
  // A failed operation has the status 400, whatever its cause: its words count.
  const refusal = new IncusRefusal(500, operation.err ?? operation.description, 'POST');
  const step = toFailure(refusal);
  if (step.outcome !== 'failed' || step.code === 'conflict' || step.code === 'gone') return undefined;
  return {
    ...step,
    ...(step.code === 'internal' && kind === 'boot' && { code: 'boot_failed' }),
    sideEffect: kinds.length === 0 ? 'none' : 'certain',
  };
}

/** Starts or stops an instance. Incus checks no tag for that, so read the instance immediately before. */
export async function setPower(
  { api, call }: Platform,
  name: string,
  body: object,
  kind: string,
  note = '',
): Promise<Step<never>> {
  const reply = await unlessConflict(api.client.send('PUT', `${pathOf(name)}/state`, { body, call }));
  return underWay(reply === undefined ? kind : `${kind}:${reply.operation}${note}`);
}

/** What may be part of a move, which creates a copy of the instance and then renames it. */
const MOVES = /^(Migrating|Renaming|Creating|Copying)/;

export function isMove({ description }: Operation): boolean {
  return MOVES.test(description);
}

function isOn({ resources }: Operation, name: string): boolean {
  return resources?.['instances']?.some((path) => path.split('?')[0] === pathOf(name)) ?? false;
}

export function pathOf(name: string): string {
  return `/1.0/instances/${name}`;
}

/** Marks a later failure as having a side effect, because the resource exists. */
export async function withEffect<T>(run: () => Promise<Step<T>>): Promise<Step<T>> {
  let step: Step<T>;
  try {
    step = await run();
  } catch (error) {
    step = toFailure(error);
  }
  return step.outcome === 'failed' && step.sideEffect === 'none' ? { ...step, sideEffect: 'certain' } : step;
}
