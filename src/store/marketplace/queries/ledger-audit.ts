import { asc, gt, ne, sql, sum } from 'drizzle-orm';
import type { LedgerReader } from '../../../marketplace/model/store.ts';
import type { Connection } from './connection.ts';

type Audit = Pick<
  LedgerReader,
  'balances' | 'wrongLoads' | 'unbalanced' | 'malformed' | 'auditSegments' | 'auditSubjects'
>;

/** Audits of the ledger from its own rows alone. Each page is one statement. */
export function ledgerAudit({ db, tables }: Connection): Audit {
  const { deployments, ledgerEntries, ledgerTransactions, segments, volumes } = tables;
  const { account, amountMicroUsd, transactionId } = ledgerEntries;
  return {
    balances: async () =>
      db
        .select({ account, amountMicroUsd: sum(amountMicroUsd).mapWith(Number) })
        .from(ledgerEntries)
        .groupBy(account)
        .orderBy(asc(account)),
    wrongLoads: async () => {
      const { teams } = tables;
      const found = await db
        .select({ id: teams.id })
        .from(teams)
        .leftJoin(OPEN, sql`open.team_id = ${teams.id}`)
        .where(sql`coalesce(open.count, 0) <> ${teams.openSegments}
          OR coalesce(open.rate, 0) <> ${teams.openRateMilliUsd}
          OR coalesce(open.posted, 0) <> ${teams.openPosted} OR open.until > ${teams.postedUntil}`);
      return found.map(({ id }) => id);
    },
    unbalanced: async (limit) => {
      const found = await db
        .select({ id: transactionId })
        .from(ledgerEntries)
        .groupBy(transactionId)
        .having(ne(sum(amountMicroUsd), sql`0`))
        .orderBy(asc(transactionId))
        .limit(limit);
      return found.map(({ id }) => id);
    },
    malformed: async (limit) => {
      const { id, kind, teamId, at } = ledgerTransactions;
      return (
        await db
          .select({ id })
          .from(ledgerTransactions)
          .leftJoin(ENTRIES, sql`entry.transaction_id = ${id}`)
          .leftJoin(SLICES, sql`slice.transaction_id = ${id}`)
          .where(sql`coalesce(entry.count, 0) <> 2 OR entry.team IS NULL OR entry.team <> 'team:' || ${teamId}
            OR entry.house IS NULL OR NOT CASE ${kind}
              WHEN 'usage' THEN entry.house IN ('revenue:compute', 'revenue:storage')
              WHEN 'top_up' THEN entry.house = 'cash'
              WHEN 'grant' THEN entry.house = 'promotion'
              ELSE entry.house = 'revenue:compute' END
            OR coalesce(slice.count, 0) <> CASE ${kind} WHEN 'usage' THEN 1 ELSE 0 END
            OR slice.slice_end <> ${at}`)
          .orderBy(asc(id))
          .limit(limit)
      ).map((found) => found.id);
    },
    auditSegments: async ({ afterId = '', limit }) =>
      db
        .select({
          segment: segments,
          slices: ofSlices('count(*)').mapWith(Number),
          slicesMicroUsd: ofSlices('coalesce(sum(slices.amount_micro_usd), 0)').mapWith(Number),
          lastSliceEnd: ofSlices<number | null>('max(slices.slice_end)').mapWith(Number),
          entriesMicroUsd: ENTRIES_OF_SLICES.mapWith(Number),
        })
        .from(segments)
        .where(gt(segments.id, afterId))
        .orderBy(asc(segments.id))
        .limit(limit),
    auditSubjects: async ({ afterId = '', limit }) => {
      const subject = (
        kind: 'deployment' | 'volume',
        { id, teamId, status, startedAt, createdAt, totalCostMicroUsd }: typeof deployments | typeof volumes,
        endedAt: typeof deployments.stoppedAt | typeof volumes.deletedAt,
      ) => ({
        kind: sql<'deployment' | 'volume'>`${sql.raw(`'${kind}'`)}`.as('kind'),
        id: sql<string>`${id}`.as('id'),
        teamId: sql<string>`${teamId}`.as('team'),
        from: sql<number>`coalesce(${startedAt}, ${createdAt})`.mapWith(Number).as('from'),
        until: sql<
          number | null
        >`CASE WHEN ${startedAt} IS NULL AND ${status} NOT IN (${sql.raw(COSTING)}) THEN ${createdAt} ELSE ${endedAt} END`
          .mapWith(Number)
          .as('until'),
        totalCostMicroUsd: sql<number>`${totalCostMicroUsd}`.mapWith(Number).as('total'),
      });
      return db
        .select(subject('deployment', deployments, deployments.stoppedAt))
        .from(deployments)
        .where(gt(deployments.id, afterId))
        .unionAll(
          db
            .select(subject('volume', volumes, volumes.deletedAt))
            .from(volumes)
            .where(gt(volumes.id, afterId)),
        )
        .orderBy(sql`id`)
        .limit(limit);
    },
  };
}

const OPEN = sql`(SELECT team_id, count(*) AS count,
    sum((original_rate_micro_usd_per_hour + 999) / 1000) AS rate,
    sum((original_rate_micro_usd_per_hour + 999) / 1000 * (posted_until / 60000)) AS posted,
    max(posted_until) AS until
  FROM segments WHERE ended_at IS NULL GROUP BY team_id) AS open`;

/** The statuses of what has begun to cost. */
const COSTING = "'running', 'stopped', 'available', 'attached'";

const ENTRIES = sql`(SELECT transaction_id, count(*) AS count,
    min(CASE WHEN account LIKE 'team:%' THEN account END) AS team,
    min(CASE WHEN account LIKE 'team:%' THEN NULL ELSE account END) AS house
  FROM ledger_entries GROUP BY transaction_id) AS entry`;
const SLICES = sql`(SELECT transaction_id, count(*) AS count, max(slice_end) AS slice_end
  FROM slices GROUP BY transaction_id) AS slice`;

/** An aggregate over the slices of a row's segment. */
function ofSlices<T = number>(aggregate: string) {
  return sql<T>`${sql.raw(`(SELECT ${aggregate} FROM slices WHERE slices.segment_id = segments.id)`)}`;
}

/**
 * What the slices' transactions took from the team, according to the entries. Each is looked up by its key; a join may
 * read all that the team ever paid, for each segment.
 */
const ENTRIES_OF_SLICES = sql<number>`(SELECT coalesce(-sum((SELECT ledger_entries.amount_micro_usd FROM ledger_entries
    WHERE ledger_entries.transaction_id = taken.transaction_id
      AND ledger_entries.account = 'team:' || segments.team_id)), 0)
  FROM (SELECT DISTINCT slices.transaction_id FROM slices WHERE slices.segment_id = segments.id) AS taken)`;
