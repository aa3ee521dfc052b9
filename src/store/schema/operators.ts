import type { AuditEntry, FigureRecord, Role } from '../../operator-kit/model.ts';
import type { Dialect } from './postgres.ts';

/** The operator tables, which are the same in either product's database. */
export function operatorTables({ table, text, bytes, bigint, json, sequence, primaryKey }: Dialect) {
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
  const audit = table('audit', {
    id: sequence('id'),
    at: bigint('at').notNull(),
    actor: text('actor').notNull(),
    source: text('source').$type<AuditEntry['source']>().notNull(),
    address: text('address'),
    action: text('action').notNull(),
    subject: text('subject'),
    detail: json('detail').$type<AuditEntry['detail']>().notNull(),
    outcome: text('outcome').$type<AuditEntry['outcome']>().notNull(),
  });

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

  return { operatorKeys, operatorSessions, audit, figures };
}
