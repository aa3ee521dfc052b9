import { z } from 'zod';
import { usdFromMicroUsd } from '../../../contract/values.ts';
import type { AlarmRecord } from '../../../operator-kit/alarms/model.ts';
import type { Columns } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { DestroyOrder, DestroyReason } from '../../model/destroy-order.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Reader, Store } from '../../model/store.ts';
import type { Work } from '../../model/work.ts';
import { diagnose, diagnosisSchema, keptUntil, readTrouble, wordsOfStep } from './diagnosis.ts';
import {
  createdEvent,
  describeConsoles,
  eventColumns,
  eventSchema,
  nothingKnown,
  toEvents,
} from './events.ts';
import { accountNames, findInstanceId, instanceRowSchema, toInstanceRow, toneOf } from './instances.ts';
import { phaseFields, toneOfPhase, toPhase } from './work.ts';

/** One instance: its row, its open work and its history. */
const instanceDetailSchema = instanceRowSchema
  .extend({
    owner_ref: z.string(),
    request_id: z.string().nullable(),
    endpoint: z.string().nullable(),
    host_key: z.string().nullable(),
    machine: z.string().meta({ description: 'Its processors, memory, disk and GPUs.' }),
    image: z.string(),
    instance_type: z.string(),
    usd_per_hour: z.number(),
    work: z.string().nullable().meta({ description: 'The open step; null: none.' }),
    attempt: z.int().nullable(),
    next_try_at: timeOrNullSchema,
    deadline_at: timeOrNullSchema,
    last_problem: z.string().nullable(),
    ...phaseFields,
    fails_since: timeOrNullSchema.meta({ description: 'Since when its step has an alarm.' }),
    acknowledged_by: z.string().nullable().meta({ description: 'Who works on that alarm.' }),
    held: z.boolean().nullable().meta({ description: 'Whether it waits for an operator to accept a loss.' }),
    kept_until: timeOrNullSchema.meta({
      description:
        'Until when its machine is kept for the operator after a failure. Null: it is not kept or, if `work` is `hold`, it is kept until its DELETE.',
    }),
    destroy_order: z
      .string()
      .nullable()
      .meta({ description: 'Who requested its removal, when and why; null: not requested.' }),
    diagnosis: diagnosisSchema.meta({ description: 'Why it is in its state, and what to do.' }),
    volumes: z.array(z.object({ id: z.string(), state: z.string() })),
    events: z.array(eventSchema),
  })
  .meta({ id: 'InstanceDetail' });
export type InstanceDetail = z.infer<typeof instanceDetailSchema>;

/** Facts about the machine. */
export const machineFacts: Columns<InstanceDetail> = [
  'offer',
  'region',
  'platform',
  { field: 'host', page: pageOfHost },
  { field: 'account', page: ({ account_id: id }) => `/instances?account=${encodeURIComponent(id)}` },
  'created_at',
  { field: 'endpoint', title: 'SSH', kind: 'code' },
  'machine',
  'image',
  { field: 'usd_per_hour', title: 'per hour' },
  'instance_type',
  'owner_ref',
  { field: 'request_id', title: 'request' },
  { field: 'host_key', kind: 'code' },
  { field: 'error', kind: 'text' },
  'destroy_order',
];

/** Facts about the open step. */
export const workFacts: Columns<InstanceDetail> = [
  'work',
  { field: 'attempt' },
  { field: 'next_try_at', title: 'next try' },
  { field: 'deadline_at', title: 'deadline' },
  'fails_since',
  'acknowledged_by',
  { field: 'phase', kind: 'text' },
  { field: 'phase_since', title: 'phase since' },
  { field: 'phase_due_at', title: 'phase due', tone: toneOfPhase },
  'held',
  'kept_until',
  { field: 'last_problem', kind: 'text' },
];

function pageOfHost({ platform, host }: InstanceDetail): string {
  return `/instances?${new URLSearchParams({ platform, host: host ?? '' })}`;
}

/** Reads one instance. Null if there is no row. A destroyed instance has one until its tombstone is pruned. */
export async function readInstance(
  read: Pick<Reader, 'instances' | 'work' | 'history' | 'credentials' | 'alarms' | 'marks' | 'volumes'>,
  id: string,
  now: number,
): Promise<InstanceDetail | null> {
  const record = await read.instances.byId(id);
  if (record === null) return null;
  const [work, history, trouble, nameOf, attachments] = await Promise.all([
    read.work.of(id),
    read.history.of(id),
    readTrouble(read, record),
    accountNames(read),
    read.volumes.attachmentsOfInstance(id),
  ]);
  const events = [createdEvent(record), ...history];
  return {
    ...toInstanceRow(record, nameOf(record.accountId)),
    ...toMachineFacts(record),
    ...toWorkFacts(work, trouble.alarms),
    destroy_order: record.destroyOrder && describeOrder(record.destroyOrder, nameOf(record.destroyOrder.by)),
    diagnosis: diagnose({ record, work, events, ...trouble }, now),
    volumes: attachments.map(({ volumeId, state }) => ({ id: volumeId, state })),
    events: toEvents(events, nameOf),
  };
}

const REASONS: Readonly<Record<DestroyReason, string>> = {
  tenant: 'a DELETE of account',
  operator: 'operator',
  failed_create: 'its create failed, on server',
  moved: 'it was moved, by server',
  policy: 'the policy of server',
};

function describeOrder({ reason, at, keepsDisks }: DestroyOrder, by: string): string {
  const kept = keepsDisks ? '; its disks are kept for retention.lost_disks_hours' : '';
  return `${REASONS[reason]} ${by}, ${toTime(at)}${kept}`;
}

function toMachineFacts({
  ownerRef,
  spec,
  endpoint,
  hostKeyFingerprint,
  priceMicroUsdPerHour,
}: InstanceRecord) {
  const { vcpus, memoryGb, storageGb, gpuCount, gpuType = 'GPU' } = spec;
  const gpus = gpuCount === undefined ? '' : `, ${gpuCount} × ${gpuType}`;
  return {
    owner_ref: ownerRef,
    request_id: spec.requestId ?? null,
    endpoint: endpoint && `${endpoint.sshUsername}@${endpoint.publicIp}:${endpoint.sshPort}`,
    host_key: hostKeyFingerprint,
    machine: `${vcpus} vCPU, ${memoryGb} GB, ${storageGb} GB disk${gpus}`,
    image: spec.image,
    instance_type: spec.instanceType,
    usd_per_hour: usdFromMicroUsd(priceMicroUsdPerHour),
  };
}

function toWorkFacts(work: Work | null, alarms: readonly AlarmRecord[]) {
  const failing = work === null ? undefined : alarms.find(({ kind }) => kind === 'step_failing');
  return {
    work: work?.kind ?? null,
    attempt: work?.attempt ?? null,
    next_try_at: toTime(work?.notBefore ?? null),
    deadline_at: toTime(work?.deadlineAt ?? null),
    last_problem: work?.lastError ?? null,
    ...toPhase(work?.progress),
    fails_since: toTime(failing?.since ?? null),
    acknowledged_by: failing?.acknowledgedBy ?? null,
    held: work?.isHeld ?? null,
    kept_until: toTime(work === null ? null : keptUntil(work)),
  };
}

/** What the command line prints after the facts and the history. */
function describeState({ work, diagnosis: { headline, because, todo }, events }: InstanceDetail): string[] {
  return [
    ...['', `Diagnosis: ${headline}.`, ...because, ...todo.map((step) => `To do: ${step}`)],
    ...(work === null ? [] : [`Open step: ${work}, to ${wordsOfStep(work)}.`]),
    ...describeConsoles(events),
  ];
}

export const instanceView = defineView({
  name: 'showInstance',
  tag: 'Instances',
  path: '/instances/{instanceId}',
  summary: 'One instance with its history',
  description: 'Includes a destroyed instance until its tombstone is pruned.',
  input: { instanceId: z.string().meta({ description: 'Its id, the beginning of its id, or its name.' }) },
  errors: ['not_found'],
  reply: ['The instance.', instanceDetailSchema],
  commands: [
    {
      name: 'instances show',
      description: 'show an instance: its row, its open work, its history, and a diagnosis',
      args: { instanceId: ['<instance>'] },
      toText: describeState,
    },
  ],
  detail: {
    title: ({ id }) => id,
    facts: ['id', 'name', { field: 'status', tone: toneOf }, ...machineFacts, ...workFacts],
    lists: [
      {
        rows: 'volumes',
        title: 'Volumes',
        none: 'No volume is attached.',
        columns: ['id', 'state'],
      },
      { rows: 'events', title: 'History', none: 'Nothing is recorded.', columns: eventColumns },
    ],
  },
  read: async ({ store: { read }, clock }: { store: Pick<Store, 'read'>; clock: Pick<Clock, 'now'> }, of) => {
    const id = await findInstanceId(read, of.instanceId);
    const found = await readInstance(read, id, clock.now());
    if (found === null) throw nothingKnown(id);
    return found;
  },
});
