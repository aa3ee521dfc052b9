import { asc, gt, sql, sum } from 'drizzle-orm';
import type { LedgerReader } from '../../../marketplace/model/ledger-store.ts';
import type { Connection } from './connection.ts';

type Audit = Pick<LedgerReader, 'balances' | 'malformed' | 'countRows' | 'auditSegments' | 'auditSubjects'>;

/** Audits the ledger from its own rows only. Each page is one statement. */
export function ledgerAudit(connection: Connection): Audit {
  const { db, deployments, ledgerEntries, ledgerTransactions, segments, volumes } = connection;
  const { account, amountMicroUsd } = ledgerEntries;
  return {
    balances: async () =>
      db
        .select({ account, amountMicroUsd: sum(amountMicroUsd).mapWith(Number) })
        .from(ledgerEntries)
        .groupBy(account)
        .orderBy(asc(account)),
    malformed: async (limit) => {
      const { id, kind, teamId, at } = ledgerTransactions;
      return db
        .select({
          id,
          isBalanced: sql`coalesce(own.amount_micro_usd + house.amount_micro_usd = 0, true)`.mapWith(Boolean),
        })
        .from(ledgerTransactions)
        .leftJoin(
          sql`ledger_entries AS own`,
          sql`own.transaction_id = ${id} AND own.account = 'team:' || ${teamId}`,
        )
        .leftJoin(
          sql`ledger_entries AS house`,
          sql`house.transaction_id = ${id} AND house.account <> 'team:' || ${teamId}`,
        )
        .leftJoin(sql`slices AS slice`, sql`slice.transaction_id = ${id}`)
        .where(sql`own.account IS NULL OR house.account IS NULL
          OR own.amount_micro_usd + house.amount_micro_usd <> 0
          OR NOT CASE ${kind}
            WHEN 'usage' THEN house.account IN ('revenue:compute', 'revenue:storage')
            WHEN 'top_up' THEN house.account = 'cash'
            WHEN 'grant' THEN house.account = 'promotion'
            ELSE house.account = 'revenue:compute' END
          OR (${kind} = 'usage') <> (slice.segment_id IS NOT NULL)
          OR slice.slice_end <> ${at}
          OR slice.amount_micro_usd <> -own.amount_micro_usd`)
        .limit(limit);
    },
    countRows: async () => {
      const count = (from: string) => sql`(SELECT count(*) FROM ${sql.raw(from)})`;
      const [found] = await db
        .select({
          transactions: count('ledger_transactions').mapWith(Number),
          entries: count('ledger_entries').mapWith(Number),
          usages: count("ledger_transactions WHERE kind = 'usage'").mapWith(Number),
          uses: count('slices').mapWith(Number),
        })
        .from(sql`(SELECT 1) AS one`);
      return found ?? { transactions: 0, entries: 0, usages: 0, uses: 0 };
    },
    auditSegments: async ({ afterId = '', limit }) => {
      const page = await db
        .select()
        .from(segments)
        .where(gt(segments.id, afterId))
        .orderBy(asc(segments.id))
        .limit(limit);
      const last = page.at(-1);
      if (last === undefined) return [];
      const sums = new Map((await sumUses(db, afterId, last.id)).map((sum) => [sum.segmentId, sum]));
      return page.map((segment) => ({ segment, ...(sums.get(segment.id) ?? NO_USES) }));
    },
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

/** The statuses that incur cost. */
const COSTING = "'running', 'stopped', 'available', 'attached'";

const NO_USES = { slices: 0, slicesMicroUsd: 0, lastSliceEnd: null, wrongAt: null };

/** The cost of a segment until the end of a slice: floor(rate × ms / hour). No product exceeds 64 bits. */
const COST = sql.raw(`CASE WHEN used.slice_end <= segment.started_at THEN 0
  ELSE segment.rate_micro_usd_per_hour / 3600000 * (used.slice_end - segment.started_at)
    + segment.rate_micro_usd_per_hour % 3600000 * (used.slice_end - segment.started_at) / 3600000 END`);

/** The slices of each segment after `afterId` up to `lastId`, in the order of the index. */
async function sumUses(db: Connection['db'], afterId: string, lastId: string) {
  const running = sql`(SELECT used.segment_id, used.slice_end, used.amount_micro_usd,
      sum(used.amount_micro_usd) OVER (PARTITION BY used.segment_id ORDER BY used.slice_end) AS posted, ${COST} AS cost
    FROM slices AS used JOIN segments AS segment ON segment.id = used.segment_id
    WHERE used.segment_id > ${afterId} AND used.segment_id <= ${lastId}) AS running`;
  return db
    .select({
      segmentId: sql<string>`segment_id`,
      slices: sql`count(*)`.mapWith(Number),
      slicesMicroUsd: sql`sum(amount_micro_usd)`.mapWith(Number),
      lastSliceEnd: sql<number | null>`max(slice_end)`.mapWith(Number),
      wrongAt: sql<number | null>`min(CASE WHEN posted <> cost THEN slice_end END)`.mapWith(Number),
    })
    .from(running)
    .groupBy(sql`segment_id`);
}
