import { hostname } from 'node:os';
import { z } from 'zod';
import { ApiError } from '../../contract/errors.ts';
import { timestampSchema } from '../../contract/values.ts';
import type { Clock } from '../../ports/clock.ts';
import { type AuditedStore, audited } from '../audit.ts';
import type { Tone } from '../columns.ts';
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
export const alarmRowSchema = z
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

const routeSchema = z
  .object({
    route: z.string(),
    type: z.enum(['webhook', 'slack', 'email']),
    severity: z.enum(severities).meta({ description: 'The least severity that it is told of.' }),
    kinds: z.array(z.string()).nullable().meta({ description: 'Null: all.' }),
    platforms: z.array(z.string()).nullable().meta({ description: 'Null: all.' }),
  })
  .meta({ id: 'AlarmRoute' });

export interface RouteDeps {
  /** The routes of the configuration. @throws {Fatal} if a secret of one is missing */
  alarmRoutes?: (() => readonly AlarmRoute[] | Promise<readonly AlarmRoute[]>) | undefined;
}
interface TestDeps extends RouteDeps {
  store: AuditedStore;
  clock: Clock;
}

export const alarmRoutesView = defineView({
  name: 'listAlarmRoutes',
  tag: 'Views',
  path: '/alarms/routes',
  summary: 'Routes of alarms',
  description: 'Who is told about which alarms, as configured under `alarms.routes`.',
  reply: ['The routes.', z.object({ routes: z.array(routeSchema) }).meta({ id: 'AlarmRouteList' })],
  commands: [
    {
      name: 'alarms routes',
      description: 'list who is told about which alarms',
      list: {},
    },
  ],
  list: {
    rows: 'routes',
    title: 'Routes of alarms',
    none: 'No route is configured: add one under `alarms.routes`.',
    columns: [
      { field: 'route', kind: 'name' },
      'type',
      'severity',
      { field: 'kinds', text: ({ kinds }) => kinds?.join(', ') ?? 'all' },
      { field: 'platforms', text: ({ platforms }) => platforms?.join(', ') ?? 'all' },
    ],
  },
  read: async ({ alarmRoutes }: RouteDeps) => ({
    routes: ((await alarmRoutes?.()) ?? []).map(({ name, type, severity, kinds, platforms }) => ({
      route: name,
      type,
      severity,
      kinds: kinds === undefined ? null : [...kinds],
      platforms: platforms === undefined ? null : [...platforms],
    })),
  }),
});

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
  form: {
    title: ({ route }) => `Test the route ${route}`,
    button: 'Send a test',
    inRows: { of: 'listAlarmRoutes', fields: ({ route }: { route: string }) => ({ route }) },
    page: () => '/console/alarms/routes',
  },
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

/** Whether an operator works on it. */
function toneOf({ severity, acknowledged_by: by }: Pick<AlarmRow, 'severity' | 'acknowledged_by'>): Tone {
  if (by !== null) return 'none';
  return severity === 'critical' ? 'bad' : 'wait';
}

/**
 * The views and actions on the alarms of a product, whose commands begin with `command`. `pageOf`: the page of what an
 * alarm is about, below `/console`.
 */
export function alarmOperations(
  kinds: AlarmKinds,
  command: string,
  pageOf: (alarm: Pick<AlarmRow, 'kind' | 'subject' | 'platform'>) => string | undefined,
) {
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
        list: {},
      },
    ],
    list: {
      rows: 'alarms',
      title: 'Alarms',
      about: 'open, the oldest first',
      none: 'No alarm is open.',
      columns: [
        { field: 'kind', title: 'alarm', kind: 'state', tone: toneOf },
        { field: 'severity', under: 'kind' },
        { field: 'subject', page: pageOf },
        { field: 'platform', isWide: true },
        'since',
        { field: 'last_seen_at', title: 'last seen', isWide: true },
        'acknowledged_by',
        { field: 'note', under: 'acknowledged_by', isWide: true },
        'text',
        { field: 'runbook', under: 'text', isWide: true },
      ],
    },
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
        list: { limit: 50 },
      },
    ],
    list: {
      rows: 'alarms',
      title: 'Ended alarms',
      about: 'the last to end first',
      none: 'No alarm has ended.',
      columns: [
        { field: 'kind', title: 'alarm', kind: 'state', tone: () => 'none' },
        { field: 'severity', isWide: true },
        { field: 'subject', page: pageOf },
        { field: 'platform', isWide: true },
        { field: 'since', kind: 'moment' },
        { field: 'until', kind: 'moment' },
        'acknowledged_by',
        { field: 'note', under: 'acknowledged_by', isWide: true },
        'text',
        { field: 'runbook', under: 'text', isWide: true },
      ],
    },
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
        toData: ({ alarms }) => ({ acknowledged: alarms.length, by: alarms[0]?.acknowledged_by }),
        toText: ({ alarms }) => [
          `${alarms.length} acknowledged by ${alarms[0]?.acknowledged_by}. An alarm ends when its cause does.`,
        ],
      },
    ],
    form: {
      title: () => 'Acknowledge an alarm',
      button: 'Acknowledge',
      inRows: {
        of: 'listAlarms',
        asks: ['note'],
        fields: ({ kind, subject, acknowledged_by: by }: AlarmRow) =>
          by === null ? { kind, subject } : undefined,
      },
      page: () => '/console/alarms',
    },
  });

  return { alarmsView, endedAlarmsView, acknowledgeAlarms };
}
