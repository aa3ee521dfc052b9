import { sql } from 'drizzle-orm';
import type { PublishedCatalog } from '../../marketplace/model/catalog-record.ts';
import type { MailClass } from '../../marketplace/model/ledger-records.ts';
import { ledgerTables } from './marketplace-ledger.ts';
import { peopleTables } from './marketplace-people.ts';
import { resourceTables } from './marketplace-resources.ts';
import { operatorTables } from './operators.ts';
import type { Dialect } from './postgres.ts';

/**
 * The marketplace's tables, in either dialect. A change here needs a migration: `npm run generate -- migration NAME`
 * writes it. STRICT, triggers and DEFERRABLE are in the migrations only.
 */
export function marketplaceTables(dialect: Dialect) {
  const people = peopleTables(dialect);
  return {
    ...people,
    ...resourceTables(dialect, people),
    ...ledgerTables(dialect, people),
    ...operationTables(dialect),
    ...operatorTables(dialect),
  };
}

/** Tables of the marketplace's PostgreSQL only. With SQLite, the one process counts requests in memory. */
export function requestCountTables({ table, text, bigint, index }: Dialect) {
  const requestCounts = table(
    'request_counts',
    {
      name: text('name').primaryKey(),
      count: bigint('count').notNull(),
      endsAt: bigint('ends_at').notNull(),
    },
    (t) => [index('request_counts_by_end').on(t.endsAt)],
  );
  return { requestCounts };
}

/** The mail outbox, the catalogs and pauses of the providers, the leases of jobs, and the program's settings. */
function operationTables({ table, text, verbatim, integer, bigint, json, index, primaryKey }: Dialect) {
  const mails = table(
    'mails',
    {
      id: text('id').primaryKey(),
      class: text('class').$type<MailClass>().notNull(),
      kind: text('kind').notNull(),
      dedupeKey: text('dedupe_key').notNull().unique('mails_dedupe_key_key'),
      to: text('to').notNull(),
      subject: verbatim('subject').notNull(),
      text: verbatim('text').notNull(),
      createdAt: bigint('created_at').notNull(),
      dueAt: bigint('due_at').notNull(),
      attempts: integer('attempts').notNull(),
      lastError: verbatim('last_error'),
      sentAt: bigint('sent_at'),
      failedAt: bigint('failed_at'),
    },
    (t) => [
      index('mails_due').on(t.dueAt).where(sql`${t.sentAt} IS NULL AND ${t.failedAt} IS NULL`),
      index('mails_by_time').on(t.createdAt),
      index('mails_given_up').on(t.failedAt).where(sql`${t.failedAt} IS NOT NULL`),
    ],
  );

  const catalogs = table('provider_catalogs', {
    providerId: text('provider_id').primaryKey(),
    version: bigint('version').notNull(),
    readAt: bigint('read_at'),
    published: json('published').$type<PublishedCatalog>(),
    problems: json('problems').$type<readonly string[]>().notNull(),
  });

  const leases = table('leases', {
    name: text('name').primaryKey(),
    token: bigint('token').notNull(),
    holder: text('holder').notNull(),
    until: bigint('until').notNull(),
  });

  const settings = table('settings', {
    name: text('name').primaryKey(),
    value: text('value').notNull(),
  });

  const salesPauses = table(
    'sales_pauses',
    {
      providerId: text('provider_id').notNull(),
      region: text('region').notNull(),
      offerId: text('offer_id').notNull(),
      reason: text('reason').notNull(),
      since: bigint('since').notNull(),
      until: bigint('until'),
      by: text('by').notNull(),
    },
    (t) => [primaryKey({ columns: [t.providerId, t.region, t.offerId] })],
  );

  return { mails, catalogs, leases, settings, salesPauses };
}
