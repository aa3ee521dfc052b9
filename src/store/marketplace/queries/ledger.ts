import { and, asc, desc, eq, gt, gte, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  SegmentRecord,
} from '../../../marketplace/model/ledger-records.ts';
import type { LedgerReader, LedgerWriter } from '../../../marketplace/model/store.ts';
import { noLocking } from '../../queries/connection.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';
import { ledgerAudit } from './ledger-audit.ts';

export function ledgerReader(connection: Connection): LedgerReader {
  const {
    db,
    tables: { deployments, ledgerEntries, ledgerTransactions, segments, slices },
    locking,
  } = connection;
  const findSegment = async (condition: SQL | undefined): Promise<SegmentRecord | null> =>
    (await locking.rows(db.select().from(segments).where(condition)))[0] ?? null;
  return {
    ...ledgerAudit(connection),
    segmentById: async (id) => {
      const [segment] = await often(connection, 'segment', { id }, (values) =>
        locking.rows(db.select().from(segments).where(eq(segments.id, values.id))),
      );
      return segment ?? null;
    },
    segmentsOf: (kind, subjectId) =>
      often(connection, 'segments', { kind, subjectId }, (values) =>
        db
          .select()
          .from(segments)
          .where(and(eq(segments.subjectKind, values.kind), eq(segments.subjectId, values.subjectId)))
          .orderBy(asc(segments.startedAt), asc(segments.id)),
      ),
    openSegmentOf: async (kind, subjectId) => {
      const isOpenOf = and(
        eq(segments.subjectKind, kind),
        eq(segments.subjectId, subjectId),
        isNull(segments.endedAt),
      );
      const found = await findSegment(isOpenOf);
      // The row that was waited for may be closed by now, and the one that follows it was not there when this began.
      return found === null && locking !== noLocking ? findSegment(isOpenOf) : found;
    },
    openSegmentsOfTeam: (teamId) =>
      often(connection, 'open segments of a team', { teamId }, (values) =>
        db
          .select({ segment: segments, confirmedUntil: deployments.observedAt })
          .from(segments)
          .leftJoin(
            deployments,
            and(eq(segments.subjectKind, 'deployment'), eq(deployments.id, segments.subjectId)),
          )
          .where(and(eq(segments.teamId, values.teamId), isNull(segments.endedAt)))
          .orderBy(asc(segments.id)),
      ),
    openSegmentsOfDeployments: async (ids) =>
      db
        .select({
          segment: segments,
          confirmedUntil: deployments.observedAt,
          totalCostMicroUsd: deployments.totalCostMicroUsd,
        })
        .from(segments)
        .innerJoin(deployments, eq(deployments.id, segments.subjectId))
        .where(
          and(
            eq(segments.subjectKind, 'deployment'),
            inArray(segments.subjectId, [...ids]),
            isNull(segments.endedAt),
          ),
        ),
    openSegments: ({ afterId = '', limit }) =>
      often(connection, 'open segments', { afterId, limit }, (values) =>
        db
          .select()
          .from(segments)
          .where(and(isNull(segments.endedAt), gt(segments.id, values.afterId)))
          .orderBy(asc(segments.id))
          .limit(values.limit),
      ),
    slicesOf: async (segmentId) =>
      db.select().from(slices).where(eq(slices.segmentId, segmentId)).orderBy(asc(slices.sliceEnd)),
    transactionsOf: async (teamId, limit) =>
      db
        .select()
        .from(ledgerTransactions)
        .where(eq(ledgerTransactions.teamId, teamId))
        .orderBy(desc(ledgerTransactions.at), desc(ledgerTransactions.id))
        .limit(limit),
    byReference: async (reference) =>
      (await db.select().from(ledgerTransactions).where(eq(ledgerTransactions.reference, reference)))[0] ??
      null,
    usageOf: async (teamId, from, to) => {
      const [sum] = await db
        .select({
          amount: sql<number>`coalesce(-sum(${ledgerEntries.amountMicroUsd}), 0)`.mapWith(Number),
        })
        .from(ledgerTransactions)
        .innerJoin(ledgerEntries, eq(ledgerEntries.transactionId, ledgerTransactions.id))
        .where(
          and(
            eq(ledgerTransactions.teamId, teamId),
            eq(ledgerTransactions.kind, 'usage'),
            gte(ledgerTransactions.at, from),
            lt(ledgerTransactions.at, to),
            eq(ledgerEntries.account, `team:${teamId}`),
          ),
        );
      return sum?.amount ?? 0;
    },
  };
}

type Entry = Omit<LedgerEntryRecord, 'transactionId'>;

export function ledgerWriter(connection: Connection): LedgerWriter {
  const {
    db,
    tables: { deployments, ledgerEntries, ledgerTransactions, segments, slices, volumes },
  } = connection;
  return {
    ...ledgerReader(connection),
    insertSegment: async (record) => void (await db.insert(segments).values(record)),
    updateSegment: async (record) =>
      void (await often(connection, 'segment written', { ...record }, (values) =>
        db.update(segments).set(values).where(eq(segments.id, values.id)),
      )),
    insertSlice: async (record) =>
      void (await often(connection, 'slice', { ...record }, (values) => db.insert(slices).values(values))),
    book: async (transaction, entries) => {
      assertBalanced(transaction, entries);
      await often(connection, 'ledger transaction', { ...transaction }, (values) =>
        db.insert(ledgerTransactions).values(values),
      );
      await db
        .insert(ledgerEntries)
        .values(entries.map((entry) => ({ ...entry, transactionId: transaction.id })));
      await addToBalances(connection, entries);
    },
    recordCost: async (kind, subjectId, amountMicroUsd, sliceEnd) => {
      const values = { subjectId, amountMicroUsd, sliceEnd };
      if (kind === 'volume')
        await often(connection, 'volume cost', values, ({ subjectId: id, amountMicroUsd: amount }) =>
          db
            .update(volumes)
            .set({ totalCostMicroUsd: sql`${volumes.totalCostMicroUsd} + ${amount}` })
            .where(eq(volumes.id, id)),
        );
      else
        await often(
          connection,
          'deployment cost',
          values,
          ({ subjectId: id, amountMicroUsd: amount, sliceEnd: end }) =>
            db
              .update(deployments)
              .set({
                totalCostMicroUsd: sql`${deployments.totalCostMicroUsd} + ${amount}`,
                lastCreditDeductionAt: sql`CASE WHEN ${deployments.lastCreditDeductionAt} > ${end}
                THEN ${deployments.lastCreditDeductionAt} ELSE ${end} END`,
              })
              .where(eq(deployments.id, id)),
        );
    },
  };
}

/** @throws {Error} a fault of the program */
function assertBalanced({ id }: LedgerTransactionRecord, entries: readonly Entry[]): void {
  const refuse = (problem: string): never => {
    throw new Error(`The ledger transaction ${id} is refused: ${problem}.`);
  };
  if (entries.length === 0) refuse('it has no entries');
  if (new Set(entries.map(({ account }) => account)).size < entries.length)
    refuse('two of its entries are of the same account');
  if (!entries.every(({ amountMicroUsd }) => Number.isSafeInteger(amountMicroUsd)))
    refuse('an amount is not a whole number of micro-USD');
  const sum = entries.reduce((total, { amountMicroUsd }) => total + BigInt(amountMicroUsd), 0n);
  if (sum !== 0n) refuse(`its entries add up to ${sum} micro-USD and not to zero`);
}

async function addToBalances(connection: Connection, entries: readonly Entry[]): Promise<void> {
  const {
    db,
    tables: { teams },
  } = connection;
  // In one order everywhere: two that write the same teams do not wait for each other.
  const sorted = [...entries].sort((a, b) => (a.account < b.account ? -1 : 1));
  for (const { account, amountMicroUsd } of sorted) {
    if (!account.startsWith('team:')) continue;
    const values = { id: account.slice('team:'.length), amountMicroUsd };
    const changed = await often(connection, 'balance', values, ({ id, amountMicroUsd: amount }) =>
      db
        .update(teams)
        .set({ balanceMicroUsd: sql`${teams.balanceMicroUsd} + ${amount}` })
        .where(eq(teams.id, id))
        .returning({ id: teams.id }),
    );
    if (changed.length === 0) throw new Error(`There is no team of the account ${account}.`);
  }
}
