import { z } from 'zod';
import { counted } from '../../../contract/counted.ts';
import { type InstanceStatus, instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { within } from '../../../operator-kit/audit.ts';
import type { Actor } from '../../../operator-kit/model.ts';
import { defineAction } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import { onBehalfOf } from '../../accounts/authenticate.ts';
import { orderDestroy } from '../../instances/destroy.ts';
import { restartInstance, startInstance, stopInstance } from '../../instances/power.ts';
import { amend } from '../../instances/transition.ts';
import { recordedOrder } from '../../model/destroy-order.ts';
import type { RequestedBy } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import { putInstanceWork } from '../../model/rows.ts';
import type { Reader, Store, Transaction } from '../../model/store.ts';
import type { Work } from '../../model/work.ts';
import { findInstanceId } from '../views/instances.ts';
import { ActionRefused, assertOnServer } from './refused.ts';

const planSchema = z
  .object({
    instance: z.string(),
    account: z.string().meta({ description: 'Its name.' }),
    account_id: z.string(),
    status: instanceStatusSchema,
    step: z
      .object({
        kind: z.string(),
        attempt: z.int(),
        next_try_at: timestampSchema,
        last_problem: z.string().nullable(),
        held: z.boolean(),
      })
      .nullable()
      .meta({ description: 'Its open step; null: none.' }),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'InstancePlan' });

/** An operator, as recorded in the history of an instance. */
export function toRequestedBy({ name: operator, address }: Actor): RequestedBy {
  return { operator, address };
}

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
}

type PowerDeps = Parameters<typeof startInstance>[0] & Parameters<typeof restartInstance>[0];

type Read = Pick<Reader, 'instances' | 'work' | 'credentials'>;

interface Found {
  record: InstanceRecord;
  /** Its open work. Null if there is none. */
  work: Work | null;
}

/** An order about one instance. */
interface InstanceOrder<D> {
  verb: 'retry' | 'release' | 'destroy' | 'start' | 'stop' | 'restart';
  summary: string;
  description: string;
  reason?: z.ZodOptional<z.ZodString>;
  /** The verb and the description of its command. */
  command: { verb: string; description: string };
  form: { title: () => string; button: string; isDangerous?: boolean };
  /** @throws {ActionRefused} */
  effect: (found: Found) => string;
  run: (tx: Transaction, found: Found, now: number, actor: Actor, deps: D) => Promise<unknown>;
}

function instanceAction<D extends Deps = Deps>({
  verb,
  reason,
  command,
  form,
  effect,
  run,
  ...texts
}: InstanceOrder<D>) {
  const plan = async (read: Read, id: string, isDone: boolean) => {
    const found = await find(read, id);
    const owner = await read.credentials.accountById(found.record.accountId);
    return { found, plan: toPlan(found, owner?.name, effect(found), isDone) };
  };
  return defineAction({
    name: `${verb}Instance`,
    tag: 'Actions',
    path: `/instances/{instanceId}/${verb}`,
    ...texts,
    input: { instanceId: z.string(), ...((reason && { reason }) as { reason?: z.ZodOptional<z.ZodString> }) },
    example: reason && { reason: 'abuse' },
    reply: ['The effect.', planSchema],
    commands: [
      {
        name: `instances ${command.verb}`,
        description: command.description,
        args: { instanceId: ['<instance>'] },
        ...(reason && { flags: { reason: ['--reason <text>', 'why, for the audit log'] } }),
        toText: describePlan,
      },
    ],
    form: {
      ...form,
      page: ({ instanceId }) => `/console/instances/${encodeURIComponent(instanceId)}`,
      preview: ({ instance, status, step }) => [
        `${instance} is ${status}.`,
        ...(step?.last_problem ? [`Last attempt: ${step.last_problem}`] : []),
      ],
    },
    resolve: async ({ store }: D, { instanceId }) => ({
      instanceId: await findInstanceId(store.read, instanceId),
    }),
    audit: ({ instanceId, reason }) => ({
      action: `instance.${verb}`,
      subject: instanceId,
      detail: { reason },
    }),
    dryRun: async ({ store }: D, { instanceId }) => (await plan(store.read, instanceId, false)).plan,
    run: (deps: D, { instanceId }, actor) =>
      onBehalfOf(deps, toRequestedBy(actor)).transact(async (tx) => {
        const planned = await plan(tx, instanceId, true);
        await run(tx, planned.found, deps.clock.now(), actor, deps);
        return planned.plan;
      }),
  });
}

/**
 * Makes the open step of an instance due now. For a live instance without open work, its machine is read again and
 * compared with the row. Each step first checks the results of earlier ones.
 */
export const retryInstance = instanceAction({
  verb: 'retry',
  summary: 'Retry its open step now',
  description: 'If no step is open, its machine is read again.',
  command: {
    verb: 'retry',
    description: 'try the open step of an instance again now, or read its machine again where none is open',
  },
  form: { title: () => 'Try now', button: 'Try now' },
  effect: ({ record: { id, status }, work }) => {
    // The earlier call may still make a machine. A second machine would cost money, too.
    if (work?.waitedAttempt !== null && work?.waitedAttempt !== undefined)
      throw new ActionRefused(
        `${id} waits because an earlier create may still have made a machine: this wait cannot be shortened.`,
      );
    if (status === 'DESTROYED')
      throw new ActionRefused(
        `${id} is DESTROYED, and its disks are kept for retention.lost_disks_hours: \`berth instances rm ${id} --yes\` removes them now.`,
      );
    if (work?.kind === 'hold') return 'the end of its console is read again; its machine stays kept';
    if (work !== null) return `its step ${work.kind} is retried now`;
    if (status === 'ONLINE' || status === 'STOPPED')
      return 'its machine is read again and compared with the row';
    throw new ActionRefused(`${id} is ${status} and has no open step: there is nothing to retry.`);
  },
  run: async (tx, { record: { id }, work }, now) => {
    await tx.history.requested({ instanceId: id, at: now, what: 'retry' });
    if (work === null) await putInstanceWork(tx, id, 'observe', now);
    else await tx.work.makeDue(id, now);
  },
});

/**
 * Ends the hold on the machine of a failed instance. The machine is removed, and the unit is free once it is proved
 * gone.
 */
export const releaseInstance = instanceAction({
  verb: 'release',
  summary: 'Remove the machine of a failed instance, with its disks',
  description:
    'Only while its open work is `hold`: until its DELETE, or until `kept_until` where that is not null.',
  command: {
    verb: 'release',
    description:
      'remove the machine of an instance that failed now, with its disks; without this it stays until its DELETE or retention.failed_machines_minutes',
  },
  form: { title: () => 'Release a kept machine', button: 'Remove it', isDangerous: true },
  effect: ({ record: { id, status }, work }) => {
    if (work?.kind !== 'hold')
      throw new ActionRefused(
        `${id} is ${status}, and its machine is not kept: there is nothing to release.`,
      );
    return 'its machine is removed now with its disk, and its unit is free once the machine is proved gone';
  },
  run: async (tx, { record }, now, { name: by }) => {
    await tx.history.requested({ instanceId: record.id, at: now, what: 'release' });
    const order = recordedOrder({ reason: 'operator', by, at: now });
    if (record.destroyOrder === null) await amend(tx, record, now, { destroyOrder: order });
    await putInstanceWork(tx, record.id, 'destroy', now);
  },
});

/**
 * Deletes an instance of any account, as its owner would. If it is already DESTROYING, restarts the removal. It becomes
 * DESTROYED only on the platform's proof that the machine is gone.
 */
export const destroyInstance = instanceAction({
  verb: 'destroy',
  summary: 'Delete an instance of any account',
  description: 'It becomes DESTROYED only when the platform shows that its machine is gone.',
  reason: z.string().max(500).optional(),
  command: {
    verb: 'rm',
    description:
      'delete an instance of any account; it becomes DESTROYED only when its machine is confirmed gone',
  },
  form: { title: () => 'Destroy an instance', button: 'Destroy it', isDangerous: true },
  effect: ({ record: { status, destroyOrder } }) => {
    if (destroyOrder?.keepsDisks)
      return 'its machine and its disks, kept since its DELETE, are removed now, and all data on them is lost';
    return status === 'DESTROYING'
      ? 'its removal starts again, and ends when the platform shows that the machine is gone'
      : 'it becomes DESTROYING; its disk and all data on it are lost, and it is DESTROYED when the platform shows that the machine is gone';
  },
  run: (tx, { record }, now, { name: by }) => orderDestroy(tx, record, now, { reason: 'operator', by }),
});

/** An order that a tenant can give, too. @throws {ActionRefused} in another status than `from` */
function powerAction(
  verb: 'start' | 'stop' | 'restart',
  from: InstanceStatus,
  order: (deps: PowerDeps, accountId: string, id: string) => Promise<unknown>,
  { summary, button, effect }: { summary: string; button: string; effect: string },
) {
  return instanceAction<PowerDeps>({
    verb,
    summary,
    description: `As its owner can. Only while it is ${from}.`,
    command: { verb, description: `${summary.toLowerCase()}: ${effect}` },
    form: { title: () => summary, button, isDangerous: verb !== 'start' },
    effect: ({ record: { id, status } }) => {
      if (status === from) return effect;
      throw new ActionRefused(`${id} is ${status}: only an instance that is ${from} can ${verb}.`);
    },
    run: (tx, { record }, _now, _actor, deps) => {
      assertOnServer(deps.manifests);
      return order({ ...deps, store: within(deps.store, tx) }, record.accountId, record.id);
    },
  });
}

export const startInstanceAction = powerAction('start', 'STOPPED', startInstance, {
  summary: 'Start an instance',
  button: 'Start it',
  effect: 'its machine starts from its disk, and it is ONLINE when its SSH endpoint answers',
});

export const stopInstanceAction = powerAction('stop', 'ONLINE', stopInstance, {
  summary: 'Stop an instance',
  button: 'Stop it',
  effect: 'its machine is shut down, and its disk is kept',
});

export const restartInstanceAction = powerAction('restart', 'ONLINE', restartInstance, {
  summary: 'Restart an instance',
  button: 'Restart it',
  effect: 'its machine is reset: its memory is lost; its disk, address and status stay',
});

/** @throws {ActionRefused} if there is none, or nothing is left of it */
async function find({ instances, work }: Read, id: string): Promise<Found> {
  const record = await instances.byId(id);
  if (record === null)
    throw new ActionRefused(`There is no instance ${id}: see \`berth instances ls\`.`, 'not_found');
  const open = await work.of(id);
  const isKept = record.destroyOrder?.keepsDisks === true && open?.kind === 'destroy';
  if (record.status === 'DESTROYED' && !isKept)
    throw new ActionRefused(`${id} is DESTROYED: nothing is left of it.`);
  return { record, work: open };
}

type Plan = z.output<typeof planSchema>;

function describePlan({ instance, account, account_id: id, status, step, effect, done }: Plan): string[] {
  const problem = step?.last_problem ? `: ${step.last_problem}` : '';
  const tried = step?.attempt ? `was tried ${counted(step.attempt, 'time')}, and is` : 'is';
  return [
    `${instance} of account ${account === id ? id : `${account} (${id})`} is ${status}.`,
    ...(step === null ? [] : [`Its step ${step.kind} ${tried} due at ${step.next_try_at}${problem}.`]),
    done ? `Ordered: ${effect}.` : `Plan: ${effect}.`,
  ];
}

/** `account` is absent if it was deleted. */
function toPlan({ record, work }: Found, account: string | undefined, effect: string, done: boolean): Plan {
  return {
    instance: record.id,
    account: account ?? record.accountId,
    account_id: record.accountId,
    status: record.status,
    step: work && {
      kind: work.kind,
      attempt: work.attempt,
      next_try_at: toTime(work.notBefore),
      last_problem: work.lastError,
      held: work.isHeld,
    },
    effect,
    done,
  };
}
