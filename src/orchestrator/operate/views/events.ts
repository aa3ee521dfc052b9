import { z } from 'zod';
import { counted } from '../../../contract/counted.ts';
import { ApiError } from '../../../contract/errors.ts';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import type { Columns } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { took, toTime } from '../../../operator-kit/views/values.ts';
import { type HistoryEvent, triesBetween } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Reader, Store } from '../../model/store.ts';
import { accountNames, findInstanceId } from './instances.ts';

/** The schema has no component name in the OpenAPI document: a reference cannot be null. */
const statusOrNullSchema = z.enum(instanceStatusSchema.options).nullable();

const bySchema = z.object({
  account: z.string().optional().meta({ description: 'Its name.' }),
  account_id: z.string().optional(),
  operator: z.string().optional(),
  key: z.string().optional().meta({ description: 'The id of the key, or `password` or `environment`.' }),
  address: z
    .string()
    .nullable()
    .meta({ description: 'Null: from the command line on the database machine.' }),
});

/** One event of an instance. */
export const eventSchema = z
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

const eventListSchema = z.object({ events: z.array(eventSchema) }).meta({ id: 'InstanceEventList' });

export const eventColumns: Columns<EventView> = [
  { field: 'at', title: 'time' },
  { field: 'cause', text: describeCause },
  { field: 'to', title: 'status', text: ({ from, to }) => to && `${from ?? ''} → ${to}`.trim() },
  { field: 'took_ms', title: 'took', text: ({ took_ms: ms }) => ms && took(ms) },
  { field: 'calls', kind: 'text', text: ({ calls }) => calls.map(describeCall).join(', ') || null },
  'next',
  { field: 'detail', kind: 'text', text: describeDetail },
  { field: 'by', kind: 'text', text: ({ by }) => by && describeBy(by) },
];

function describeCause({ cause, attempt }: EventView): string {
  return attempt === null || attempt === 1 ? cause : `${cause} (${attempt})`;
}

function describeCall({ call, outcome, took_ms: ms, detail }: EventView['calls'][number]): string {
  return `${call} ${outcome} ${took(ms)}${detail === undefined ? '' : ` (${detail})`}`;
}

function describeDetail({ detail, tries_between: between }: EventView): string | null {
  return between === 0 ? detail : `${detail} (${counted(between, 'equal failure')} in between)`;
}

/** A short text that names the requester. */
export function describeBy({ account = '', operator, key, address }: NonNullable<EventView['by']>): string {
  const who = operator === undefined ? account : `operator ${operator}`;
  const withKey = key === undefined ? '' : ` ${key}`;
  return `${who}${withKey}${address === null ? '' : ` from ${address}`}`;
}

/** The consoles of failed machines, indented so that they cannot be mistaken for Berth's output. */
export function describeConsoles(events: readonly EventView[]): string[] {
  return events.flatMap(({ console }) =>
    console === null
      ? []
      : ['', 'The end of its console:', ...console.split('\n').map((line) => `  ${line}`)],
  );
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

export function toEvents(
  events: readonly HistoryEvent[],
  nameOf: (accountId: string) => string,
): EventView[] {
  return events.map((event, index) => ({
    at: toTime(event.at),
    cause: event.cause,
    attempt: event.attempt,
    tries_between: triesBetween(events[index - 1], event),
    from: event.fromStatus,
    to: event.toStatus,
    next: event.next,
    detail: event.detail,
    calls: event.calls.map(({ tookMs: took_ms, ...call }) => ({ ...call, took_ms })),
    console: event.console,
    took_ms: event.tookMs,
    by: event.by && toBy(event.by, nameOf),
  }));
}

function toBy({ account, ...by }: NonNullable<HistoryEvent['by']>, nameOf: (accountId: string) => string) {
  return account === undefined ? by : { ...by, account: nameOf(account), account_id: account };
}

/** Reads the events of an instance, even after its tombstone is pruned. Empty if nothing is recorded. */
export async function readEvents(
  read: Pick<Reader, 'instances' | 'history' | 'credentials'>,
  id: string,
): Promise<EventView[]> {
  const [record, events, nameOf] = await Promise.all([
    read.instances.byId(id),
    read.history.of(id),
    accountNames(read),
  ]);
  return toEvents([...(record === null ? [] : [createdEvent(record)]), ...events], nameOf);
}

/** @throws {ApiError} `not_found` */
export function nothingKnown(id: string): ApiError {
  return new ApiError(
    'not_found',
    `There is no instance ${id}, and no history of it: see \`berth instances ls\`.`,
  );
}

export const eventsView = defineView({
  name: 'listInstanceEvents',
  tag: 'Instances',
  path: '/instances/{instanceId}/events',
  summary: 'The history of an instance',
  description: 'Oldest first. It is kept after the tombstone of the instance is pruned.',
  input: { instanceId: z.string().meta({ description: 'Its id, the beginning of its id, or its name.' }) },
  errors: ['not_found'],
  reply: ['The events.', eventListSchema],
  commands: [
    {
      name: 'instances events',
      description:
        'show the history of an instance: changes of status with their causes, calls to the platform, SSH proofs; --limit shows the last ones',
      args: { instanceId: ['<instance>'] },
      list: { fromEnd: true },
      toText: ({ events }) => describeConsoles(events),
    },
  ],
  list: { rows: 'events', title: 'History', none: 'Nothing is recorded.', columns: eventColumns },
  read: async ({ store: { read } }: { store: Pick<Store, 'read'> }, { instanceId }) => {
    const id = await findInstanceId(read, instanceId);
    const events = await readEvents(read, id);
    if (events.length === 0) throw nothingKnown(id);
    return { events };
  },
});
