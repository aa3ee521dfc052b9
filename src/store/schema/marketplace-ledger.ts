import { sql } from 'drizzle-orm';
import type {
  LedgerAccount,
  LedgerTransactionKind,
  SegmentRecord,
  SubjectKind,
} from '../../marketplace/model/ledger-records.ts';
import type { PeopleTables } from './marketplace-people.ts';
import type { Dialect } from './postgres.ts';

/**
 * The ledger. The migrations also contain what drizzle cannot express: triggers make its tables append-only, except
 * segments, let a day line replace its slices, and maintain the sums of open segments in `teams`; a slice's reference
 * to its transaction is checked at the commit.
 */
export function ledgerTables(
  { table, text, idOf, verbatim, bigint, double, primaryKey, index, uniqueIndex, check }: Dialect,
  { teams }: PeopleTables,
) {
  const segments = table(
    'segments',
    {
      id: text('id').primaryKey(),
      subjectKind: text('subject_kind').$type<SubjectKind>().notNull(),
      subjectId: text('subject_id').notNull(),
      teamId: idOf('team_id', () => teams.id),
      state: text('state').$type<SegmentRecord['state']>().notNull(),
      rateMicroUsdPerHour: bigint('rate_micro_usd_per_hour').notNull(),
      originalRateMicroUsdPerHour: bigint('original_rate_micro_usd_per_hour').notNull(),
      discountPercentage: double('discount_percentage').notNull(),
      startedAt: bigint('started_at').notNull(),
      endedAt: bigint('ended_at'),
      postedUntil: bigint('posted_until').notNull(),
      postedMicroUsd: bigint('posted_micro_usd').notNull(),
      providerRateMicroUsdPerHour: bigint('provider_rate_micro_usd_per_hour'),
    },
    (t) => [
      index('segments_by_subject').on(t.subjectKind, t.subjectId, t.startedAt),
      uniqueIndex('segments_one_open').on(t.subjectKind, t.subjectId).where(sql`${t.endedAt} IS NULL`),
      index('segments_open').on(t.id).where(sql`${t.endedAt} IS NULL`),
      index('segments_ended').on(t.endedAt, t.id).where(sql`${t.endedAt} IS NOT NULL`),
      index('segments_ended_by_team').on(t.teamId, t.endedAt, t.id).where(sql`${t.endedAt} IS NOT NULL`),
      index('segments_due').on(t.postedUntil, t.id).where(sql`${t.endedAt} IS NULL`),
      index('segments_open_by_team')
        .on(t.teamId, t.originalRateMicroUsdPerHour, t.postedUntil)
        .where(sql`${t.endedAt} IS NULL`),
      check('segments_check', sql`${t.endedAt} >= ${t.startedAt}`),
      check('segments_check1', sql`${t.postedUntil} >= ${t.startedAt}`),
    ],
  );

  const ledgerTransactions = table(
    'ledger_transactions',
    {
      id: text('id').primaryKey(),
      kind: text('kind').$type<LedgerTransactionKind>().notNull(),
      teamId: idOf('team_id', () => teams.id),
      at: bigint('at').notNull(),
      memo: verbatim('memo').notNull(),
      reference: text('reference').unique('ledger_transactions_reference_key'),
    },
    (t) => [
      index('ledger_transactions_by_team').on(t.teamId, t.at),
      // Nearly all transactions are usage.
      index('ledger_transactions_credits').on(t.at, t.id).where(sql`${t.kind} <> 'usage'`),
    ],
  );

  const ledgerEntries = table(
    'ledger_entries',
    {
      transactionId: idOf('transaction_id', () => ledgerTransactions.id),
      account: text('account').$type<LedgerAccount>().notNull(),
      amountMicroUsd: bigint('amount_micro_usd').notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.transactionId, t.account] }),
      index('ledger_entries_by_account').on(t.account, t.amountMicroUsd),
    ],
  );

  const slices = table(
    'slices',
    {
      segmentId: idOf('segment_id', () => segments.id),
      sliceEnd: bigint('slice_end').notNull(),
      amountMicroUsd: bigint('amount_micro_usd').notNull(),
      transactionId: idOf('transaction_id', () => ledgerTransactions.id),
    },
    (t) => [
      primaryKey({ columns: [t.segmentId, t.sliceEnd] }),
      index('slices_by_transaction').on(t.transactionId),
    ],
  );

  return { segments, ledgerTransactions, ledgerEntries, slices };
}
