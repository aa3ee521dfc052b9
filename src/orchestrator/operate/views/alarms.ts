import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { type Columns, linkOfId, type Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import { type AlarmRecord, alarmKinds } from '../../model/alarm.ts';
import type { Reader, Store } from '../../model/store.ts';

/** An open alarm in the operator API. */
export const alarmRowSchema = z
  .object({
    kind: z.enum(alarmKinds),
    subject: z.string(),
    platform: z.string().nullable().meta({ description: 'Null: not about a platform.' }),
    since: timestampSchema,
    last_seen_at: timestampSchema,
    acknowledged_by: z.string().nullable(),
    text: z.string(),
  })
  .meta({ id: 'Alarm' });
export type AlarmRow = z.infer<typeof alarmRowSchema>;

export const alarmListSchema = z.object({ alarms: z.array(alarmRowSchema) }).meta({ id: 'AlarmList' });

/** Lists the open alarms, oldest first. */
export async function listAlarms(read: Pick<Reader, 'alarms'>): Promise<AlarmRow[]> {
  return (await read.alarms.list()).map(toAlarmRow);
}

export function toAlarmRow(alarm: AlarmRecord): AlarmRow {
  return {
    kind: alarm.kind,
    subject: alarm.subject,
    platform: alarm.platform,
    since: toTime(alarm.since),
    last_seen_at: toTime(alarm.lastSeenAt),
    acknowledged_by: alarm.acknowledgedBy,
    text: alarm.text,
  };
}

/** A resource on a platform without an owning row, or a resource whose row was lost. */
const orphanSchema = z
  .object({
    kind: z.enum(['machine', 'volume', 'row_lost', 'leftover']).meta({
      description: '`leftover`: parts, such as disks or ports, whose machine or volume is missing.',
    }),
    ref: z.string().meta({ description: 'Its name on the platform.' }),
    platform: z.string().nullable(),
    since: timestampSchema,
    text: z.string(),
  })
  .meta({ id: 'Orphan' });
export type Orphan = z.infer<typeof orphanSchema>;

const orphanListSchema = z.object({ orphans: z.array(orphanSchema) }).meta({ id: 'OrphanList' });

const orphanKinds = {
  orphan_machine: 'machine',
  orphan_volume: 'volume',
  row_lost: 'row_lost',
  leftover: 'leftover',
} as const;

/** Lists orphans. Each is an alarm while the platform shows it. */
async function listOrphans(read: Pick<Reader, 'alarms'>): Promise<Orphan[]> {
  return (await read.alarms.list()).flatMap(({ kind, subject, platform, since, text }) =>
    isOrphan(kind) ? [{ kind: orphanKinds[kind], ref: subject, platform, since: toTime(since), text }] : [],
  );
}

function isOrphan(kind: string): kind is keyof typeof orphanKinds {
  return kind in orphanKinds;
}

/** Whether an operator works on it. */
function toneOfAlarm({ acknowledged_by: by }: Pick<AlarmRow, 'acknowledged_by'>): Tone {
  return by === null ? 'bad' : 'wait';
}

/** The page of what an alarm is about. */
function linkOfSubject({ kind, subject, platform }: AlarmRow): string | undefined {
  const own = linkOfId(subject);
  if (own !== undefined) return own;
  if (isOrphan(kind)) return '/orphans';
  if (kind === 'losses_held') return '/losses';
  return platform === null ? undefined : `/platforms/${encodeURIComponent(platform)}`;
}

export const alarmColumns: Columns<AlarmRow> = [
  { field: 'kind', title: 'alarm', kind: 'state', tone: toneOfAlarm },
  { field: 'subject', page: linkOfSubject },
  { field: 'platform', isWide: true },
  'since',
  { field: 'last_seen_at', title: 'last seen', isWide: true },
  'acknowledged_by',
  'text',
];

interface Deps {
  store: Pick<Store, 'read'>;
}

export const alarmsView = defineView({
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
    about: 'oldest first',
    none: 'No alarm is open.',
    columns: alarmColumns,
  },
  read: async ({ store }: Deps) => ({ alarms: await listAlarms(store.read) }),
});

export const orphansView = defineView({
  name: 'listOrphans',
  tag: 'Views',
  path: '/orphans',
  summary: 'Machines and volumes without a row, rows that were lost, and leftover parts',
  description: 'Each has an open alarm as long as the platform shows it.',
  reply: ['The orphans.', orphanListSchema],
  commands: [
    {
      name: 'orphans ls',
      description:
        'list machines and volumes without a row that owns them, rows that were lost, and leftover parts of either',
      isDefault: true,
      list: {},
    },
  ],
  list: {
    rows: 'orphans',
    title: 'Orphans',
    about: 'machines and volumes on a platform with our tag, but without a row',
    none: 'There is no orphan.',
    columns: [{ field: 'kind', kind: 'state', tone: () => 'wait' }, 'ref', 'platform', 'since', 'text'],
  },
  read: async ({ store }: Deps) => ({ orphans: await listOrphans(store.read) }),
});
