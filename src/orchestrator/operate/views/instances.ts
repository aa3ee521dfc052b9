import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import { type InstanceStatus, instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { linkOfId, type Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import {
  cutPage,
  limitSchema,
  nextSchema,
  timeOrNullSchema,
  toTime,
  USUAL_PAGE,
} from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import { Fatal } from '../../../ports/errors.ts';
import type { DestroyOrder, DestroyReason } from '../../model/destroy-order.ts';
import { type HistoryEvent, triesBetween } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { InstanceSearch, ListedInstance, Reader, Store } from '../../model/store.ts';
import type { Work } from '../../model/work.ts';
import { idOfAccount } from './accounts.ts';
import { diagnose, diagnosisSchema, keptUntil, readTrouble } from './diagnosis.ts';
import { phaseFields, toPhase } from './work.ts';

/** An instance in the list of the operator API. */
const instanceRowSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    status: instanceStatusSchema,
    offer: z.string(),
    region: z.string(),
    platform: z.string(),
    host: z.string().nullable().meta({ description: 'Null: not reported by the platform.' }),
    account: z.string().meta({ description: 'Its name.' }),
    account_id: z.string(),
    created_at: timestampSchema,
    updated_at: timestampSchema,
    error: z.string().nullable(),
  })
  .meta({ id: 'InstanceRow' });
export type InstanceRow = z.infer<typeof instanceRowSchema>;

const instancePageSchema = z
  .object({
    instances: z.array(instanceRowSchema),
    total: z.int().meta({ description: 'Number of results on all pages.' }),
    next: nextSchema,
  })
  .meta({ id: 'InstancePage' });
export type InstancePage = z.infer<typeof instancePageSchema>;

/** Filters and page of the list. `after` is the `next` of the previous page. */
export interface InstanceQuery extends InstanceSearch {
  order?: 'oldest' | 'newest' | undefined;
  after?: string | undefined;
  limit?: number | undefined;
}

/**
 * The instances that are not destroyed, page by page. Inserts and deletes meanwhile do not move other instances to
 * another page.
 */
export async function listInstances(
  read: Pick<Reader, 'instances' | 'credentials'>,
  { order = 'oldest', after, limit = USUAL_PAGE, ...of }: InstanceQuery,
): Promise<InstancePage> {
  const place = after === undefined ? undefined : toPlace(after);
  const [found, total, nameOf] = await Promise.all([
    read.instances.search({ ...of, order, limit: limit + 1, ...(place !== undefined && { after: place }) }),
    read.instances.countFound(of),
    accountNames(read),
  ]);
  const { rows, next } = cutPage(found, limit, ({ createdAt, id }) => `${createdAt}.${id}`);
  return { instances: rows.map((record) => toInstanceRow(record, nameOf(record.accountId))), total, next };
}

const AFTER = /^(\d{1,15})\.(.{1,200})$/;

/** Whether the text has the form of a page's `next`. */
export function isAfter(text: string): boolean {
  return AFTER.test(text);
}

function toPlace(text: string): ListedInstance | undefined {
  const [, createdAt, id] = AFTER.exec(text) ?? [];
  return createdAt === undefined || id === undefined ? undefined : { createdAt: Number(createdAt), id };
}

/** Returns a function from an account's id to its name, or to the id if the account is gone. */
export async function accountNames({
  credentials,
}: Pick<Reader, 'credentials'>): Promise<(id: string) => string> {
  const names = new Map((await credentials.listAccounts()).map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}

/**
 * The instances that match an operator's argument: the one with that id, or else all with that name that are not
 * destroyed.
 */
async function findInstances(
  read: Pick<Reader, 'instances' | 'credentials'>,
  idOrName: string,
): Promise<InstanceRow[]> {
  const record = await read.instances.byId(idOrName);
  if (record === null) return (await listInstances(read, { name: idOrName })).instances;
  return [toInstanceRow(record, (await accountNames(read))(record.accountId))];
}

function toInstanceRow(record: InstanceRecord, account: string): InstanceRow {
  return {
    id: record.id,
    name: record.name,
    status: record.status,
    offer: record.offerId,
    region: record.region,
    platform: record.platform,
    host: record.host,
    account,
    account_id: record.accountId,
    created_at: toTime(record.createdAt),
    updated_at: toTime(record.updatedAt),
    error: record.error,
  };
}

/** The schema has no component name in the OpenAPI document: a reference cannot be null. */
const statusOrNullSchema = z.enum(instanceStatusSchema.options).nullable();

const bySchema = z.object({
  account: z.string().optional(),
  operator: z.string().optional(),
  key: z.string().optional().meta({ description: 'The id of the key, or `password` or `environment`.' }),
  address: z
    .string()
    .nullable()
    .meta({ description: 'Null: from the command line on the database machine.' }),
});

/** One event of an instance. */
const eventSchema = z
  .object({
    at: timestampSchema,
    cause: z
      .string()
      .meta({ description: 'The step of work; `request`: a client asked for it; `attach`: a volume.' }),
    attempt: z.int().nullable().meta({ description: 'Null: not a step.' }),
    tries_between: z.int().meta({
      description: 'Tries since the event before that failed as both did. They have no events of their own.',
    }),
    from: statusOrNullSchema,
    to: statusOrNullSchema.meta({ description: 'Null: the status did not change.' }),
    next: z.string().nullable().meta({ description: 'What follows: another step, `again` or `finish`.' }),
    detail: z.string().nullable().meta({
      description: 'Why it failed; for a request that does not change the status, what was requested.',
    }),
    calls: z.array(
      z.object({
        call: z.string(),
        outcome: z.string(),
        took_ms: z.number(),
        detail: z.string().optional(),
      }),
    ),
    console: z.string().nullable().meta({ description: 'The last console lines of a failed machine.' }),
    took_ms: z.number().nullable(),
    by: bySchema
      .nullable()
      .meta({ description: 'Who requested it. Null: a step did it, or it was not recorded.' }),
  })
  .meta({ id: 'InstanceEvent' });
export type EventView = z.infer<typeof eventSchema>;

/** One instance: its row, its open work and its history. */
const instanceDetailSchema = instanceRowSchema
  .extend({
    owner_ref: z.string(),
    request_id: z.string().nullable(),
    endpoint: z.string().nullable(),
    host_key: z.string().nullable(),
    work: z.string().nullable().meta({ description: 'The open step; null: none.' }),
    attempt: z.int().nullable(),
    next_try_at: timeOrNullSchema,
    deadline_at: timeOrNullSchema,
    last_problem: z.string().nullable(),
    ...phaseFields,
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
    events: z.array(eventSchema),
  })
  .meta({ id: 'InstanceDetail' });
export type InstanceDetail = z.infer<typeof instanceDetailSchema>;

/** Reads one instance. Null if there is no row. A destroyed instance has one until its tombstone is pruned. */
export async function readInstance(
  read: Pick<Reader, 'instances' | 'work' | 'history' | 'credentials' | 'alarms' | 'marks'>,
  id: string,
  now: number,
): Promise<InstanceDetail | null> {
  const record = await read.instances.byId(id);
  if (record === null) return null;
  const [work, history, trouble, nameOf] = await Promise.all([
    read.work.of(id),
    read.history.of(id),
    readTrouble(read, record),
    accountNames(read),
  ]);
  const events = [createdEvent(record), ...history];
  const { tone: _, ...diagnosis } = diagnose({ record, work, events, ...trouble }, now);
  return {
    ...toInstanceRow(record, nameOf(record.accountId)),
    ...toWorkFacts(record, work),
    destroy_order: record.destroyOrder && describeOrder(record.destroyOrder, nameOf(record.destroyOrder.by)),
    diagnosis,
    events: events.map(toEvent),
  };
}

/** Reads the events of an instance, even after its tombstone is pruned. Empty if nothing is recorded. */
export async function readEvents(
  read: Pick<Reader, 'instances' | 'history'>,
  id: string,
): Promise<EventView[]> {
  const [record, events] = await Promise.all([read.instances.byId(id), read.history.of(id)]);
  return [...(record === null ? [] : [createdEvent(record)]), ...events].map(toEvent);
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

function toWorkFacts(record: InstanceRecord, work: Work | null) {
  const { endpoint } = record;
  return {
    owner_ref: record.ownerRef,
    request_id: record.spec.requestId ?? null,
    endpoint: endpoint && `${endpoint.sshUsername}@${endpoint.publicIp}:${endpoint.sshPort}`,
    host_key: record.hostKeyFingerprint,
    work: work?.kind ?? null,
    attempt: work?.attempt ?? null,
    next_try_at: toTime(work?.notBefore ?? null),
    deadline_at: toTime(work?.deadlineAt ?? null),
    last_problem: work?.lastError ?? null,
    ...toPhase(work?.progress),
    held: work?.isHeld ?? null,
    kept_until: toTime(work === null ? null : keptUntil(work)),
  };
}

/** The first event. The history does not store the create, since the row has it. */
export function createdEvent({ id, createdAt, spec }: InstanceRecord): HistoryEvent {
  return {
    instanceId: id,
    at: createdAt,
    cause: 'request',
    attempt: null,
    fromStatus: null,
    toStatus: 'PROVISIONING',
    next: null,
    detail: null,
    calls: [],
    console: null,
    tookMs: null,
    by: spec.createdBy ?? null,
  };
}

/** A short text that names the requester. `nameOf` gives the name of an account. */
export function describeBy(
  { account, operator, key, address }: NonNullable<EventView['by']>,
  nameOf: (accountId: string) => string = (id) => id,
): string {
  const client = account === undefined ? '' : nameOf(account);
  const who = operator === undefined ? client : `operator ${operator}`;
  const withKey = key === undefined ? '' : ` ${key}`;
  return `${who}${withKey}${address === null ? '' : ` from ${address}`}`;
}

function toEvent(event: HistoryEvent, index: number, all: readonly HistoryEvent[]): EventView {
  return {
    at: toTime(event.at),
    cause: event.cause,
    attempt: event.attempt,
    tries_between: triesBetween(all[index - 1], event),
    from: event.fromStatus,
    to: event.toStatus,
    next: event.next,
    detail: event.detail,
    calls: event.calls.map(({ tookMs: took_ms, ...call }) => ({ ...call, took_ms })),
    console: event.console,
    took_ms: event.tookMs,
    by: event.by,
  };
}

const TONES: Readonly<Record<InstanceStatus, Tone>> = {
  PROVISIONING: 'busy',
  ONLINE: 'good',
  STOPPING: 'busy',
  STOPPED: 'none',
  OFFLINE: 'wait',
  DESTROYING: 'busy',
  DESTROYED: 'none',
  ERROR: 'bad',
};

export function toneOf({ status }: { status: InstanceStatus }): Tone {
  return TONES[status];
}

interface Deps {
  store: Pick<Store, 'read'>;
}

export const instancesView = defineView({
  name: 'findInstances',
  tag: 'Instances',
  path: '/instances',
  summary: 'Instances of all accounts, page by page',
  description:
    'Instances that are not destroyed. `q` searches id, name, owner ref, endpoint, error and cause of failure.',
  input: {
    account: z.string().optional().meta({ description: 'The name or the id of an account.' }),
    status: instanceStatusSchema.exclude(['DESTROYED']).optional(),
    offer: z.string().optional(),
    region: z.string().optional(),
    platform: z.string().optional(),
    host: z.string().optional(),
    q: z.string().max(200).optional(),
    order: z.enum(['oldest', 'newest']).optional(),
    after: z.string().refine(isAfter, 'expected the `next` value of a page').optional(),
    limit: limitSchema,
  },
  errors: ['not_found'],
  reply: ['One page.', instancePageSchema],
  commands: [
    {
      name: 'instances ls',
      description: 'list the instances that are not destroyed, the oldest first',
      flags: {
        account: ['--account <account>', 'those of one account, by its name or id'],
        region: ['--region <token>', 'those of one region'],
        offer: ['--offer <id>', 'those of one offer'],
        q: [
          '--find <text>',
          'those with this text in the id, name, owner ref, endpoint, error or failure cause',
        ],
        status: ['--status <status>', 'those with one status'],
      },
      list: {},
    },
  ],
  list: {
    rows: 'instances',
    title: 'Instances',
    none: 'There is no such instance.',
    usual: { order: 'newest' },
    columns: [
      { field: 'id', title: 'instance', kind: 'id', page: ({ id }) => linkOfId(id) },
      { field: 'name', under: 'id' },
      { field: 'status', tone: toneOf },
      'offer',
      { field: 'region', under: 'offer' },
      'platform',
      { field: 'host', under: 'platform' },
      'account',
      'created_at',
      { field: 'updated_at', isWide: true },
      { field: 'error', under: 'id' },
    ],
  },
  read: async ({ store: { read } }: Deps, { account, offer: offerId, q: text, ...query }) =>
    listInstances(read, { ...query, accountId: await idOfAccount(read, account), offerId, text }),
});

export const instanceView = defineView({
  name: 'showInstance',
  tag: 'Instances',
  path: '/instances/{instanceId}',
  summary: 'One instance with its history',
  description: 'Includes a destroyed instance until its tombstone is pruned.',
  input: { instanceId: z.string() },
  errors: ['not_found'],
  reply: ['The instance.', instanceDetailSchema],
  read: async ({ store, clock }: Deps & { clock: Pick<Clock, 'now'> }, { instanceId }) => {
    const found = await readInstance(store.read, instanceId, clock.now());
    if (found === null) throw new ApiError('not_found', 'There is no instance with this id.');
    return found;
  },
});

/**
 * Finds the id of an instance by its id or name. An unknown text is returned unchanged: an instance that was destroyed
 * long ago still has a history under its id.
 * @throws {Fatal} with the candidates, if several have this name
 */
export async function findInstanceId(
  read: Pick<Reader, 'instances' | 'credentials'>,
  idOrName: string,
): Promise<string> {
  const [first, ...others] = await findInstances(read, idOrName);
  if (first === undefined) return idOrName;
  if (others.length === 0) return first.id;
  const candidates = [first, ...others].map(
    ({ id, status, account, region }) => `${id} (${status}, account ${account}, ${region})`,
  );
  throw new Fatal(
    `${candidates.length} instances are named ${idOrName}: ${candidates.join(', ')}. Give the id of the one that you mean.`,
  );
}
