import type { InstanceStatus } from '../../../contract/instance.ts';
import { audited } from '../../../operators/audit.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import { askedBy } from '../../accounts/asked-by.ts';
import { orderDestroy } from '../../instances/destroy.ts';
import { amend } from '../../instances/transition.ts';
import { recordedOrder } from '../../model/destroy-order.ts';
import type { RequestedBy } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import { putInstanceWork } from '../../model/rows.ts';
import type { Reader, Store } from '../../model/store.ts';
import type { Work } from '../../model/work.ts';
import { ActionRefused } from './refused.ts';

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
}

/** An operator, as recorded in the history of an instance. */
export function toRequestedBy({ name: operator, address }: Actor): RequestedBy {
  return { operator, address };
}

/** The effect of an order about an instance, planned or done. */
export interface Plan {
  instance: string;
  account: string;
  status: InstanceStatus;
  /** Its open work. Null: none. */
  step: Pick<Work, 'kind' | 'attempt' | 'notBefore' | 'lastError' | 'isHeld'> | null;
  /** The effect as a sentence. */
  effect: string;
  /** False: a dry run; nothing has changed. */
  isDone: boolean;
}

/** An operator's order. It is a dry run unless `isDone` is true. */
export interface Order {
  id: string;
  isDone: boolean;
}

/**
 * Makes the open step of an instance due now. For a live instance without open work, its machine is read again and
 * compared with the row. Each step first checks the results of earlier ones.
 *
 * @throws {ActionRefused}
 */
export async function retryInstance(deps: Deps, actor: Actor, { id, isDone }: Order): Promise<Plan> {
  const plan = async (read: Pick<Reader, 'instances' | 'work'>): Promise<Plan> => {
    const { record, work } = await find(read, id);
    return toPlan(record, work, { effect: effectOfRetry(record, work), isDone });
  };
  if (!isDone) return plan(deps.store.read);
  return audited(deps, actor, { action: 'instance.retry', subject: id }, (inside) =>
    askedBy(inside, toRequestedBy(actor)).transact(async (tx) => {
      const planned = await plan(tx);
      const now = deps.clock.now();
      await tx.history.asked({ instanceId: id, at: now, what: 'retry' });
      if (planned.step === null) await putInstanceWork(tx, id, 'observe', now);
      else await tx.work.makeDue(id, now);
      return planned;
    }),
  );
}

/** @throws {ActionRefused} */
function effectOfRetry({ id, status }: InstanceRecord, work: Work | null): string {
  // The earlier call may still make a machine. A second machine would cost money, too.
  if (work?.waitedAttempt !== null && work?.waitedAttempt !== undefined)
    throw new ActionRefused(
      `${id} waits because an earlier create may still have made a machine: this wait cannot be shortened.`,
    );
  if (status === 'DESTROYED')
    throw new ActionRefused(
      `${id} is DESTROYED, and its disks are kept for losses.keep_disks_hours: \`berth instances rm ${id} --yes\` removes them now.`,
    );
  if (work?.kind === 'hold') return 'the end of its console is read again; its machine stays kept';
  if (work !== null) return `its step ${work.kind} is retried now`;
  if (status === 'ONLINE' || status === 'STOPPED')
    return 'its machine is read again and compared with the row';
  throw new ActionRefused(`${id} is ${status} and has no open step: there is nothing to retry.`);
}

/**
 * Deletes an instance of any account, as its owner would. If it is already DESTROYING, restarts the removal. It becomes
 * DESTROYED only on the platform's proof that the machine is gone.
 *
 * @throws {ActionRefused}
 */
export async function forceDestroyInstance(
  deps: Deps,
  actor: Actor,
  { id, isDone, reason }: Order & { reason: string | null },
): Promise<Plan> {
  const plan = async (
    read: Pick<Reader, 'instances' | 'work'>,
  ): Promise<Plan & { record: InstanceRecord }> => {
    const { record, work } = await find(read, id);
    return { ...toPlan(record, work, { effect: effectOfDestroy(record), isDone }), record };
  };
  if (!isDone) return withoutRecord(await plan(deps.store.read));
  const detail = reason === null ? {} : { reason };
  return audited(deps, actor, { action: 'instance.destroy', subject: id, detail }, (inside) =>
    askedBy(inside, toRequestedBy(actor)).transact(async (tx) => {
      const planned = await plan(tx);
      const now = deps.clock.now();
      await orderDestroy(tx, planned.record, now, { reason: 'operator', by: actor.name });
      return withoutRecord(planned);
    }),
  );
}

function effectOfDestroy({ status, destroyOrder }: InstanceRecord): string {
  if (destroyOrder?.keepsDisks)
    return 'its machine and its disks, kept since its DELETE, are removed now, and all data on them is lost';
  return status === 'DESTROYING'
    ? 'its removal starts again, and ends when the platform shows that the machine is gone'
    : 'it becomes DESTROYING; its disk and all data on it are lost, and it is DESTROYED when the platform shows that the machine is gone';
}

/**
 * Ends the hold on the machine of a failed instance. The machine is removed, and the unit is free once it is proved
 * gone.
 *
 * @throws {ActionRefused}
 */
export async function releaseInstance(deps: Deps, actor: Actor, { id, isDone }: Order): Promise<Plan> {
  const plan = async (
    read: Pick<Reader, 'instances' | 'work'>,
  ): Promise<Plan & { record: InstanceRecord }> => {
    const { record, work } = await find(read, id);
    if (work?.kind !== 'hold')
      throw new ActionRefused(
        `${id} is ${record.status}, and its machine is not kept: there is nothing to release.`,
      );
    const effect =
      'its machine is removed now with its disk, and its unit is free once the machine is proved gone';
    return { ...toPlan(record, work, { effect, isDone }), record };
  };
  if (!isDone) return withoutRecord(await plan(deps.store.read));
  return audited(deps, actor, { action: 'instance.release', subject: id }, (inside) =>
    askedBy(inside, toRequestedBy(actor)).transact(async (tx) => {
      const planned = await plan(tx);
      const now = deps.clock.now();
      await tx.history.asked({ instanceId: id, at: now, what: 'release' });
      const order = recordedOrder({ reason: 'operator', by: actor.name, at: now });
      if (planned.record.destroyOrder === null) await amend(tx, planned.record, now, { destroyOrder: order });
      await putInstanceWork(tx, id, 'destroy', now);
      return withoutRecord(planned);
    }),
  );
}

function withoutRecord({ record: _, ...plan }: Plan & { record: InstanceRecord }): Plan {
  return plan;
}

async function find(
  { instances, work }: Pick<Reader, 'instances' | 'work'>,
  id: string,
): Promise<{ record: InstanceRecord; work: Work | null }> {
  const record = await instances.byId(id);
  if (record === null)
    throw new ActionRefused(`There is no instance ${id}: see \`berth instances ls\`.`, 'not_found');
  const open = await work.of(id);
  if (record.status === 'DESTROYED' && !isKept(record, open))
    throw new ActionRefused(`${id} is DESTROYED: nothing is left of it.`);
  return { record, work: open };
}

/** Whether its disks are kept after its DELETE. */
function isKept({ destroyOrder }: InstanceRecord, work: Work | null): boolean {
  return destroyOrder?.keepsDisks === true && work?.kind === 'destroy';
}

function toPlan(
  { id, accountId, status }: InstanceRecord,
  work: Work | null,
  rest: Pick<Plan, 'effect' | 'isDone'>,
): Plan {
  const step = work && {
    kind: work.kind,
    attempt: work.attempt,
    notBefore: work.notBefore,
    lastError: work.lastError,
    isHeld: work.isHeld,
  };
  return { instance: id, account: accountId, status, step, ...rest };
}
