import { hostname } from 'node:os';
import { z } from 'zod';
import { ApiError } from '../../contract/errors.ts';
import { timestampSchema } from '../../contract/values.ts';
import type { Clock } from '../../ports/clock.ts';
import { type AuditedStore, audited } from '../audit.ts';
import type { AuditWriter } from '../model.ts';
import { defineAction, defineView } from '../operation.ts';
import { afterSchema, limitSchema, nextSchema, pageByTime, toTime } from '../views/values.ts';
import { factsOf } from './kind-facts.ts';
import { toTestMessage } from './message.ts';
import {
  type AlarmKinds,
  type AlarmReader,
  type AlarmRecord,
  type AlarmWriter,
  type EndedAlarm,
  severities,
} from './model.ts';
import type { AlarmRoute } from './notifier.ts';

const alarmShape = {
  kind: z.string(),
  severity: z.enum(severities),
  subject: z.string(),
  platform: z
    .string()
    .nullable()
    .meta({ description: 'A platform, or the provider of a marketplace; null: not about one.' }),
  since: timestampSchema,
};
const alarmEnd = {
  acknowledged_by: z.string().nullable(),
  note: z.string().nullable().meta({ description: 'What the operator wrote who acknowledged it.' }),
  text: z.string(),
  runbook: z.string().meta({ description: 'The section of the documentation on what to do.' }),
};

/** An open alarm in the operator API. */
const alarmRowSchema = z
  .object({ ...alarmShape, last_seen_at: timestampSchema, ...alarmEnd })
  .meta({ id: 'Alarm' });
export type AlarmRow = z.infer<typeof alarmRowSchema>;

const endedAlarmSchema = z
  .object({ ...alarmShape, until: timestampSchema, ...alarmEnd })
  .meta({ id: 'EndedAlarm' });
export type EndedAlarmRow = z.infer<typeof endedAlarmSchema>;

const alarmListSchema = z.object({ alarms: z.array(alarmRowSchema) }).meta({ id: 'AlarmList' });
const endedPageSchema = z
  .object({ alarms: z.array(endedAlarmSchema), next: nextSchema })
  .meta({ id: 'EndedAlarmPage' });

export interface ReadDeps {
  store: { read: { alarms: AlarmReader } };
}
export interface AcknowledgeDeps extends ReadDeps {
  store: ReadDeps['store'] & {
    transact<T>(body: (tx: { audit: AuditWriter; alarms: AlarmWriter }) => Promise<T>): Promise<T>;
  };
  clock: Clock;
}

export interface RouteDeps {
  /** The routes of the configuration. @throws {Fatal} if a secret of one is missing */
  alarmRoutes?: (() => readonly AlarmRoute[] | Promise<readonly AlarmRoute[]>) | undefined;
}
interface TestDeps extends RouteDeps {
  store: AuditedStore;
  clock: Clock;
}

/** Sends a message to a route. It writes its own row of the audit log, since a call must not run in a transaction. */
export const testAlarmRoute = defineAction({
  name: 'testAlarmRoute',
  tag: 'Actions',
  path: '/alarms/routes/{route}/test',
  summary: 'Send a test message to a route of alarms',
  description: 'Now and once, whatever its severity and kinds are.',
  input: { route: z.string() },
  errors: ['not_found', 'invalid_state'],
  reply: ['The route that accepted it.', z.object({ route: z.string() }).meta({ id: 'TestedAlarmRoute' })],
  commands: [
    {
      name: 'alarms test',
      description: 'send a test message to a route',
      args: { route: ['<route>'] },
      toText: ({ route }) => [`The route ${route} accepted a test message.`],
    },
  ],
  run: async ({ store, clock, alarmRoutes }: TestDeps, { route: name }, actor) => {
    const routes = (await alarmRoutes?.()) ?? [];
    const route = routes.find((one) => one.name === name);
    const known = routes.map((one) => one.name).join(', ') || 'none';
    const problem =
      route === undefined
        ? new ApiError('not_found', `There is no route ${name}. Configured: ${known}.`)
        : await route.send(toTestMessage({ route: name, server: hostname() }, actor.name, clock.now())).then(
            () => undefined,
            (error) =>
              new ApiError('invalid_state', `The route ${name} did not accept it: ${toOneLine(error)}.`),
          );
    return audited({ store, clock }, actor, { action: 'alarm.test', subject: name }, async () => {
      if (problem !== undefined) throw problem;
      return { route: name };
    });
  },
});

function toOneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll('\n', '; ').replace(/\.$/, '');
}

/** The views and actions on the alarms of a product, whose commands begin with `command`. */
export function alarmOperations(kinds: AlarmKinds, command: string) {
  const kindSchema = z.enum(Object.keys(kinds) as [string, ...string[]]);
  const common = ({
    kind,
    subject,
    platform,
    acknowledgedBy,
    note,
    text,
    ...times
  }: Omit<AlarmRecord, 'lastSeenAt'>) => ({
    kind,
    ...factsOf(kinds, kind),
    subject,
    platform,
    since: toTime(times.since),
    acknowledged_by: acknowledgedBy,
    note,
    text,
  });
  const toRow = (alarm: AlarmRecord): AlarmRow => ({
    ...common(alarm),
    last_seen_at: toTime(alarm.lastSeenAt),
  });
  const toEndedRow = (alarm: EndedAlarm): EndedAlarmRow => ({ ...common(alarm), until: toTime(alarm.until) });

  const alarmsView = defineView({
    name: 'listAlarms',
    tag: 'Views',
    path: '/alarms',
    summary: 'Open alarms',
    description: 'Oldest first, from every server on the database.',
    reply: ['The alarms.', alarmListSchema],
    commands: [
      {
        name: 'alarms ls',
        description: 'list the open alarms, the oldest first',
        list: { none: 'No alarm is open.', hidden: ['runbook'] },
        toData: ({ alarms }) => alarms,
      },
    ],
    read: async ({ store: { read } }: ReadDeps) => ({ alarms: (await read.alarms.list()).map(toRow) }),
  });

  const endedAlarmsView = defineView({
    name: 'listEndedAlarms',
    tag: 'Views',
    path: '/alarms/ended',
    summary: 'Alarms that ended',
    description: 'The last to end first, page by page; kept for `retention.audit_days`.',
    input: {
      kind: z.string().optional(),
      subject: z.string().optional(),
      platform: z.string().optional(),
      after: afterSchema,
      limit: limitSchema,
    },
    reply: ['A page of them.', endedPageSchema],
    commands: [
      {
        name: 'alarms history',
        description: 'list the alarms that ended, the last to end first',
        flags: {
          kind: ['--kind <kind>', 'only this kind'],
          subject: ['--subject <subject>', 'only those about this subject, such as the id of an instance'],
          platform: ['--platform <name>', 'only those about this platform or provider'],
        },
        list: { limit: 50, none: 'No alarm has ended.', hidden: ['runbook'] },
        toData: ({ alarms }) => alarms,
      },
    ],
    read: async ({ store: { read } }: ReadDeps, { after, limit, ...of }) => {
      const ended = await pageByTime(
        [({ from, to, limit: most }) => read.alarms.ended({ ...of, by: 'until', from, to, limit: most })],
        {
          timeOf: ({ until }) => until,
          after,
          limit,
        },
      );
      return { alarms: ended.rows.map(toEndedRow), next: ended.next };
    },
  });

  const input = {
    kind: kindSchema,
    subject: z.string().optional(),
    note: z.string().max(500).optional().meta({ description: 'Kept with the alarm, also after its end.' }),
  };
  const subjectOf = ({ kind, subject }: { kind: string; subject?: string | undefined }): string =>
    [kind, subject ?? []].flat().join(' ');

  /** Records that an operator is working on an alarm, or on all alarms of a kind. Each ends with its cause. */
  const acknowledgeAlarms = defineAction({
    name: 'acknowledgeAlarms',
    tag: 'Views',
    path: '/alarms/acknowledge',
    summary: 'Acknowledge an alarm',
    description: 'Without a subject: all alarms of that kind. An alarm ends with its cause.',
    input,
    example: { kind: Object.keys(kinds)[0], subject: 'default', note: 'the switch is being replaced' },
    errors: ['not_found'],
    reply: ['The acknowledged alarms.', alarmListSchema],
    audit: (of) => ({
      action: 'alarm.acknowledge',
      subject: subjectOf(of),
      detail: of.note ? { note: of.note } : {},
    }),
    run: async ({ store }: AcknowledgeDeps, { kind, subject, note }, { name }) => {
      const acknowledged = await store.transact((tx) =>
        tx.alarms.acknowledge({ kind, subject }, name, note || null),
      );
      if (acknowledged.length === 0)
        throw new ApiError(
          'not_found',
          `No alarm ${subjectOf({ kind, subject })} is open: see \`${command} alarms ls\`.`,
        );
      return { alarms: acknowledged.map(toRow) };
    },
    commands: [
      {
        name: 'alarms ack',
        description: 'record that you work on an alarm; without a subject, on all of that kind',
        args: { kind: ['<kind>', 'of alarm'], subject: ['[subject]'] },
        flags: {
          note: ['--note <text>', 'what you found or do; kept with the alarm'],
          by: ['--by <name>', 'who has taken it on; default: the user of this machine'],
        },
        toData: ({ alarms }, _input, _deps, actor) => ({ acknowledged: alarms.length, by: actor.name }),
        toText: ({ alarms }, _input, _deps, actor) => [
          `${alarms.length} acknowledged by ${actor.name}. An alarm ends when its cause does.`,
        ],
      },
    ],
    form: { title: () => 'Acknowledge an alarm', button: 'Acknowledge', page: () => '/console/alarms' },
  });

  return { alarmsView, endedAlarmsView, acknowledgeAlarms };
}
