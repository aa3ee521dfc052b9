import { and, asc, eq, getTableColumns, gt, lte, type SQL, sql, sum } from 'drizzle-orm';
import type { Period, StatementReader } from '../../../marketplace/model/ledger-store.ts';
import { DAY_MS } from '../../../ports/clock.ts';
import type { Connection } from './connection.ts';

export function statementReader(connection: Connection): StatementReader {
  const { db, deployments, ledgerEntries, ledgerTransactions, segments, slices, volumes } = connection;
  const { account, amountMicroUsd } = ledgerEntries;
  const { at, kind, id, teamId } = ledgerTransactions;
  const isIn = ({ from, to }: Period) => and(gt(at, from), lte(at, to));
  /** What the slices of a period charged for each segment. */
  const charged = ({ from, to }: Period) =>
    db
      .select({ segmentId: slices.segmentId, amount: sum(slices.amountMicroUsd).as('amount') })
      .from(slices)
      .where(and(gt(slices.sliceEnd, from), lte(slices.sliceEnd, to)))
      .groupBy(slices.segmentId)
      .as('charged');
  /** The charged time of a segment within a period. */
  const spanOf = ({ from, to }: Period) => ({
    begin: sql`CASE WHEN ${segments.startedAt} > ${from} THEN ${segments.startedAt} ELSE ${from} END`,
    end: sql`CASE WHEN ${segments.postedUntil} < ${to} THEN ${segments.postedUntil} ELSE ${to} END`,
  });
  const isUsed = ({ from, to }: Period) =>
    sql`${segments.startedAt} < ${to} AND ${segments.postedUntil} > ${from}`;
  const isOf = (name: 'deployment' | 'volume', of: typeof deployments.id | typeof volumes.id): SQL =>
    sql`${segments.subjectKind} = ${sql.raw(`'${name}'`)} AND ${of} = ${segments.subjectId}`;
  const providerId = sql<string>`coalesce(${deployments.providerId}, ${volumes.providerId}, '')`;
  return {
    usageRows: async (team, period) => {
      const used = charged(period);
      const { begin, end } = spanOf(period);
      const found = await db
        .select({
          subjectKind: segments.subjectKind,
          subjectId: segments.subjectId,
          state: segments.state,
          deploymentName: deployments.name,
          volumeName: volumes.name,
          providerId,
          rateMicroUsdPerHour: segments.rateMicroUsdPerHour,
          from: begin.mapWith(Number),
          to: end.mapWith(Number),
          amountMicroUsd: sql`coalesce(${used.amount}, 0)`.mapWith(Number),
        })
        .from(segments)
        .leftJoin(used, eq(used.segmentId, segments.id))
        .leftJoin(deployments, isOf('deployment', deployments.id))
        .leftJoin(volumes, isOf('volume', volumes.id))
        .where(and(eq(segments.teamId, team), isUsed(period)))
        .orderBy(asc(segments.subjectKind), asc(segments.subjectId), asc(segments.startedAt));
      return found.map(({ deploymentName, volumeName, ...row }) => ({
        ...row,
        name: deploymentName ?? volumeName ?? '',
      }));
    },
    usageSums: async (period) => {
      const used = charged(period);
      const { begin, end } = spanOf(period);
      const ms = sql`(${end}) - (${begin})`;
      const rate = segments.providerRateMicroUsdPerHour;
      // floor(rate × ms / hour). No product exceeds 64 bits.
      const cost = sql`${rate} / 3600000 * (${ms}) + ${rate} % 3600000 * (${ms}) / 3600000`;
      return db
        .select({
          teamId: segments.teamId,
          providerId,
          subjectKind: segments.subjectKind,
          ms: sql`sum(${ms})`.mapWith(Number),
          amountMicroUsd: sql`coalesce(sum(${used.amount}), 0)`.mapWith(Number),
          providerMicroUsd: sql`coalesce(sum(${cost}), 0)`.mapWith(Number),
          unpricedMs: sql`coalesce(sum(CASE WHEN ${rate} IS NULL THEN ${ms} END), 0)`.mapWith(Number),
        })
        .from(segments)
        .leftJoin(used, eq(used.segmentId, segments.id))
        .leftJoin(deployments, isOf('deployment', deployments.id))
        .leftJoin(volumes, isOf('volume', volumes.id))
        .where(isUsed(period))
        .groupBy(segments.teamId, providerId, segments.subjectKind);
    },
    entriesByDay: async (period) => {
      const day = sql<number>`(${at} - 1) / ${sql.raw(String(DAY_MS))}`;
      const isUsage = sql<boolean>`${kind} = 'usage'`;
      const found = await db
        .select({
          account,
          isUsage: isUsage.mapWith(Boolean),
          day: day.mapWith(Number),
          amountMicroUsd: sum(amountMicroUsd).mapWith(Number),
        })
        .from(ledgerTransactions)
        .innerJoin(ledgerEntries, eq(ledgerEntries.transactionId, id))
        .where(isIn(period))
        .groupBy(account, isUsage, day);
      return found.map((row) => ({ ...row, day: row.day * DAY_MS }));
    },
    balancesAt: async (time, of) =>
      db
        .select({ account, amountMicroUsd: sum(amountMicroUsd).mapWith(Number) })
        .from(ledgerTransactions)
        .innerJoin(ledgerEntries, eq(ledgerEntries.transactionId, id))
        .where(and(lte(at, time), of === undefined ? undefined : sql`${account} = ${of}`))
        .groupBy(account),
    bookingsOf: async (team, period) =>
      db
        .select({
          ...getTableColumns(ledgerTransactions),
          amountMicroUsd: sql`${amountMicroUsd}`.mapWith(Number),
        })
        .from(ledgerTransactions)
        .innerJoin(
          ledgerEntries,
          and(eq(ledgerEntries.transactionId, id), sql`${account} = 'team:' || ${teamId}`),
        )
        .where(and(eq(teamId, team), sql`${kind} <> 'usage'`, isIn(period)))
        .orderBy(asc(at), asc(id)),
    firstUsageAt: async () => {
      const usage = db.select({ at }).from(ledgerTransactions).where(eq(kind, 'usage'));
      const [first] = await usage.orderBy(asc(at)).limit(1);
      return first?.at ?? null;
    },
  };
}
