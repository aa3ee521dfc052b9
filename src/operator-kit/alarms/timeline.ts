import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { type Clock, DAY_MS } from '../../ports/clock.ts';
import { linkOfId, type Tone } from '../columns.ts';
import type { AuditReader, AuditRecord } from '../model.ts';
import { defineView, type Flag } from '../operation.ts';
import { afterSchema, limitSchema, nextSchema, pageByTime, type TimeRange, toTime } from '../views/values.ts';
import { factsOf } from './kind-facts.ts';
import type { AlarmKinds, AlarmReader, AlarmRecord } from './model.ts';

/** The usual length of a timeline. */
const USUAL_MS = 7 * DAY_MS;
/** How many rows are read at first if only some of them match. */
const FIRST_READ = 500;

const entrySchema = z
  .object({
    at: timestampSchema,
    source: z.enum(['alarm', 'operator', 'server', 'resource']).meta({
      description:
        '`alarm`: one began or ended · `operator`: an action, with its outcome · `server`: what Berth did by itself · `resource`: a change of an instance or a deployment.',
    }),
    event: z.string(),
    subject: z.string().nullable(),
    by: z.string().nullable(),
    text: z.string(),
  })
  .meta({ id: 'TimelineEntry' });
export type TimelineRow = z.infer<typeof entrySchema>;

const TONES: Readonly<Record<TimelineRow['source'], Tone>> = {
  alarm: 'bad',
  operator: 'busy',
  server: 'wait',
  resource: 'none',
};

export interface TimelineEntry extends Omit<TimelineRow, 'at'> {
  at: number;
  /** The names that it mentions, besides its subject. */
  about: readonly string[];
}

const timelinePageSchema = z
  .object({ entries: z.array(entrySchema), next: nextSchema })
  .meta({ id: 'TimelinePage' });

/** The names that a timeline is limited to; each entry concerns all of them. */
export interface TimelineFilter {
  /** An instance or a deployment. */
  instance?: string | undefined;
  host?: string | undefined;
  /** A platform, or the provider of a marketplace. */
  provider?: string | undefined;
  /** An account, or a team. */
  account?: string | undefined;
}

export type TimelineList = (range: TimeRange) => Promise<TimelineEntry[]>;

interface Deps {
  store: { read: { alarms: AlarmReader; audit: AuditReader } };
  clock: Pick<Clock, 'now'>;
}

/** What a product adds to its timeline. */
interface Product<D> {
  kinds: AlarmKinds;
  /** What the filters are called there. Without `host`, there are no hosts. */
  words: { instance: string; host?: string; provider: string; account: string };
  /** The changes of its resources. */
  resources(deps: D, filter: TimelineFilter): TimelineList[];
  /** The names of the host, provider and account of each subject that is a resource. */
  placesOf(deps: D, subjects: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
}

function alarmLists({ alarms }: Deps['store']['read'], kinds: AlarmKinds): TimelineList[] {
  const toEntry = (alarm: Omit<AlarmRecord, 'lastSeenAt'>, at: number, event: string): TimelineEntry => ({
    at,
    source: 'alarm',
    event: `${alarm.kind} ${event}`,
    subject: alarm.subject,
    by: event === 'ended' ? alarm.acknowledgedBy : null,
    text: event === 'ended' ? (alarm.note ?? '') : `${factsOf(kinds, alarm.kind).severity}: ${alarm.text}`,
    about: [alarm.platform ?? '', ...alarm.subject.split('/')],
  });
  return [
    async ({ from, to }) =>
      (await alarms.list())
        .filter(({ since }) => since >= from && since <= to)
        .map((alarm) => toEntry(alarm, alarm.since, 'began')),
    async (range) =>
      (await alarms.ended({ ...range, by: 'since' })).map((alarm) => toEntry(alarm, alarm.since, 'began')),
    async (range) =>
      (await alarms.ended({ ...range, by: 'until' })).map((alarm) => toEntry(alarm, alarm.until, 'ended')),
  ];
}

function toAuditEntry({ at, actor, source, action, subject, detail, outcome }: AuditRecord): TimelineEntry {
  const given = Object.entries(detail).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return {
    at,
    source: source === 'server' ? 'server' : 'operator',
    event: outcome === 'done' ? action : `${action} ${outcome}`,
    subject,
    by: actor,
    text: given.join(', '),
    about: [
      ...(subject?.split(/[ /]/) ?? []),
      ...Object.values(detail)
        .flat()
        .filter((value) => typeof value === 'string'),
    ],
  };
}

/** The rows of a list that `keep` selects. It reads more rows until they are enough. */
function only(list: TimelineList, keep: (rows: TimelineEntry[]) => Promise<TimelineEntry[]>): TimelineList {
  return async ({ limit, ...range }) => {
    for (let most = Math.max(limit, FIRST_READ); ; most *= 4) {
      const rows = await list({ ...range, limit: most });
      const kept = await keep(rows);
      if (kept.length >= limit || rows.length < most) return kept.slice(0, limit);
    }
  };
}

/**
 * The timeline of a product: alarms, the audit log, and changes of its resources. It reads what is stored for other
 * purposes.
 */
export function timelineView<D extends Deps>({ kinds, words, resources, placesOf }: Product<D>) {
  const flag = (name: 'instance' | 'host' | 'provider' | 'account'): Flag => [
    `--${name} <name>`,
    `only what concerns this ${words[name]}`,
  ];
  const name = (what: string) =>
    z
      .string()
      .max(255)
      .optional()
      .meta({ description: `Only what concerns this ${what}.` });
  // A product without hosts has no such filter.
  const host = (words.host === undefined ? {} : { host: name(words.host) }) as {
    host: ReturnType<typeof name>;
  };
  return defineView({
    name: 'getTimeline',
    tag: 'Views',
    path: '/timeline',
    summary: 'What happened, by time',
    description:
      'Alarms that began and ended, actions of operators, what servers did by themselves, and changes of resources; the newest first, page by page. Without `from`: the seven days before `to`.',
    input: {
      from: timestampSchema.optional(),
      to: timestampSchema.optional(),
      instance: name(words.instance),
      ...host,
      provider: name(words.provider),
      account: name(words.account),
      after: afterSchema,
      limit: limitSchema,
    },
    reply: ['A page of it.', timelinePageSchema],
    commands: [
      {
        name: 'timeline',
        flags: {
          from: ['--from <time>', 'only from this time on; default: seven days earlier', { mayBePast: true }],
          to: ['--to <time>', 'only up to this time; default: now', { mayBePast: true }],
          instance: flag('instance'),
          ...(words.host !== undefined && { host: flag('host') }),
          provider: flag('provider'),
          account: flag('account'),
        },
        list: { limit: 100 },
      },
    ],
    list: {
      rows: 'entries',
      title: 'Timeline',
      about: 'the newest first',
      none: 'Nothing happened then.',
      columns: [
        'at',
        { field: 'source', kind: 'state', tone: ({ source }) => TONES[source] },
        'event',
        { field: 'subject', page: ({ subject }) => linkOfId(subject ?? '') },
        'by',
        'text',
      ],
    },
    read: async (deps: D, { from, to, after, limit, ...filter }) => {
      const wanted = Object.values(filter).filter((one): one is string => typeof one === 'string');
      const keep = async (rows: TimelineEntry[]): Promise<TimelineEntry[]> => {
        const places = await placesOf(deps, [...new Set(rows.flatMap(({ subject }) => subject ?? []))]);
        return rows.filter(({ subject, about }) => {
          const names = [subject, ...about, ...(places.get(subject ?? '') ?? [])];
          return wanted.every((one) => names.includes(one));
        });
      };
      const { read } = deps.store;
      const audit: TimelineList = async (range) => (await read.audit.between(range)).map(toAuditEntry);
      const common = [...alarmLists(read, kinds), audit];
      const last = to === undefined ? deps.clock.now() : Date.parse(to);
      const { rows, next } = await pageByTime(
        [
          ...(wanted.length === 0 ? common : common.map((list) => only(list, keep))),
          ...resources(deps, filter),
        ],
        {
          timeOf: ({ at }) => at,
          from: from === undefined ? last - USUAL_MS : Date.parse(from),
          to: last,
          after,
          limit,
        },
      );
      return { entries: rows.map(({ about: _, ...row }) => ({ ...row, at: toTime(row.at) })), next };
    },
  });
}
