import type { AlarmNotice } from '../../operator-kit/alarms/model.ts';
import type { AuditEntry, FigureRecord, Role } from '../../operator-kit/model.ts';
import type { Dialect } from './postgres.ts';

/** The operator tables, which are the same in either product's database. */
export function operatorTables(dialect: Dialect) {
  const { table, text, bytes, bigint, json, sequence, primaryKey, index } = dialect;
  /** Keys for the admin listener. They grant no access to accounts. */
  const operatorKeys = table('operator_keys', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    role: text('role').$type<Role>().notNull(),
    digest: bytes('digest').notNull().unique('operator_keys_digest_key'),
    prefix: text('prefix').notNull(),
    lastFour: text('last_four').notNull(),
    createdAt: bigint('created_at').notNull(),
    revokedAt: bigint('revoked_at'),
    lastUsedAt: bigint('last_used_at'),
  });

  /** Sessions of the console, which any server on the database accepts. */
  const operatorSessions = table('operator_sessions', {
    digest: bytes('digest').primaryKey(),
    keyId: text('key_id').notNull(),
    endsAt: bigint('ends_at').notNull(),
  });

  /** The table has no references, because a row outlives its subject. */
  const audit = table(
    'audit',
    {
      id: sequence('id'),
      at: bigint('at').notNull(),
      actor: text('actor').notNull(),
      source: text('source').$type<AuditEntry['source']>().notNull(),
      address: text('address'),
      action: text('action').notNull(),
      subject: text('subject'),
      detail: json('detail').$type<AuditEntry['detail']>().notNull(),
      outcome: text('outcome').$type<AuditEntry['outcome']>().notNull(),
    },
    (t) => [index('audit_by_time').on(t.at)],
  );

  /** Figures over time. The key begins with what is pruned and read together. */
  const figures = table(
    'figures',
    {
      step: text('step').$type<FigureRecord['step']>().notNull(),
      at: bigint('at').notNull(),
      series: text('series').notNull(),
      subject: text('subject').notNull(),
      rows: json('rows').$type<FigureRecord['rows']>().notNull(),
    },
    (t) => [primaryKey({ columns: [t.step, t.at, t.series, t.subject] })],
  );

  return { operatorKeys, operatorSessions, audit, figures, ...alarmTables(dialect) };
}

/** Open alarms, those that ended, and the messages about them. */
function alarmTables({ table, text, integer, bigint, sequence, primaryKey, index }: Dialect) {
  const alarms = table(
    'alarms',
    {
      kind: text('kind').notNull(),
      subject: text('subject').notNull(),
      platform: text('platform'),
      text: text('text').notNull(),
      since: bigint('since').notNull(),
      lastSeenAt: bigint('last_seen_at').notNull(),
      acknowledgedBy: text('acknowledged_by'),
      note: text('note'),
    },
    (t) => [primaryKey({ columns: [t.kind, t.subject] })],
  );

  const endedAlarms = table(
    'ended_alarms',
    {
      id: sequence('id'),
      kind: text('kind').notNull(),
      subject: text('subject').notNull(),
      platform: text('platform'),
      text: text('text').notNull(),
      since: bigint('since').notNull(),
      until: bigint('until').notNull(),
      acknowledgedBy: text('acknowledged_by'),
      note: text('note'),
    },
    (t) => [index('ended_alarms_by_since').on(t.since), index('ended_alarms_by_until').on(t.until)],
  );

  const alarmNotices = table(
    'alarm_notices',
    {
      route: text('route').notNull(),
      kind: text('kind').notNull(),
      subject: text('subject').notNull(),
      since: bigint('since').notNull(),
      platform: text('platform'),
      text: text('text').notNull(),
      until: bigint('until'),
      told: text('told').$type<AlarmNotice['told']>().notNull(),
      dueAt: bigint('due_at'),
      attempts: integer('attempts').notNull(),
      lastError: text('last_error'),
    },
    (t) => [
      primaryKey({ columns: [t.route, t.kind, t.subject, t.since] }),
      index('alarm_notices_due').on(t.route, t.dueAt),
      index('alarm_notices_by_until').on(t.until),
    ],
  );

  return { alarms, endedAlarms, alarmNotices };
}
