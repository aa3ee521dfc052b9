import { and, asc, desc, eq, gt, gte, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  SegmentRecord,
  SliceRecord,
  SubjectKind,
} from '../../../marketplace/model/ledger-records.ts';
import type { LedgerReader, LedgerWriter } from '../../../marketplace/model/store.ts';
import { noLocking } from '../../queries/connection.ts';
import { prepared } from '../../queries/prepared.ts';
import type { Connection } from './connection.ts';
import { ledgerAudit } from './ledger-audit.ts';

const segmentById = prepared(({ db, tables: { segments }, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(segments).where(eq(segments.id, id))),
);

const segmentsOf = prepared(
  ({ db, tables: { segments } }: Connection, subject: { kind: SubjectKind; subjectId: string }) =>
    db
      .select()
      .from(segments)
      .where(and(eq(segments.subjectKind, subject.kind), eq(segments.subjectId, subject.subjectId)))
      .orderBy(asc(segments.startedAt), asc(segments.id)),
);

const openSegmentsOfTeam = prepared(
  ({ db, tables: { deployments, segments } }: Connection, { teamId }: { teamId: string }) =>
    db
      .select({ segment: segments, confirmedUntil: deployments.observedAt })
      .from(segments)
      .leftJoin(
        deployments,
        and(eq(segments.subjectKind, 'deployment'), eq(deployments.id, segments.subjectId)),
      )
      .where(and(eq(segments.teamId, teamId), isNull(segments.endedAt)))
      .orderBy(asc(segments.id)),
);

const openSegments = prepared(
  ({ db, tables: { segments } }: Connection, { afterId, limit }: { afterId: string; limit: number }) =>
    db
      .select()
      .from(segments)
      .where(and(isNull(segments.endedAt), gt(segments.id, afterId)))
      .orderBy(asc(segments.id))
      .limit(limit),
);

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
      const [segment] = await segmentById(connection, { id });
      return segment ?? null;
    },
    segmentsOf: (kind, subjectId) => segmentsOf(connection, { kind, subjectId }),
    openSegmentOf: async (kind, subjectId) => {
      const isOpenOf = and(
        eq(segments.subjectKind, kind),
        eq(segments.subjectId, subjectId),
        isNull(segments.endedAt),
      );
      const found = await findSegment(isOpenOf);
      // The row that was waited for may be closed now, and the statement did not see the one that follows it.
      return found === null && locking !== noLocking ? findSegment(isOpenOf) : found;
    },
    openSegmentsOfTeam: (teamId) => openSegmentsOfTeam(connection, { teamId }),
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
    openSegments: ({ afterId = '', limit }) => openSegments(connection, { afterId, limit }),
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

const updateSegment = prepared(({ db, tables: { segments } }: Connection, record: SegmentRecord) =>
  db.update(segments).set(record).where(eq(segments.id, record.id)),
);

const insertSlice = prepared(({ db, tables: { slices } }: Connection, record: SliceRecord) =>
  db.insert(slices).values(record),
);

const insertTransaction = prepared(
  ({ db, tables: { ledgerTransactions } }: Connection, record: LedgerTransactionRecord) =>
    db.insert(ledgerTransactions).values(record),
);

const addToBalance = prepared(
  ({ db, tables: { teams } }: Connection, { id, amountMicroUsd }: { id: string; amountMicroUsd: number }) =>
    db
      .update(teams)
      .set({ balanceMicroUsd: sql`${teams.balanceMicroUsd} + ${amountMicroUsd}` })
      .where(eq(teams.id, id))
      .returning({ id: teams.id }),
);

const addVolumeCost = prepared(
  (
    { db, tables: { volumes } }: Connection,
    { subjectId, amountMicroUsd }: { subjectId: string; amountMicroUsd: number },
  ) =>
    db
      .update(volumes)
      .set({ totalCostMicroUsd: sql`${volumes.totalCostMicroUsd} + ${amountMicroUsd}` })
      .where(eq(volumes.id, subjectId)),
);

const addDeploymentCost = prepared(
  (
    { db, tables: { deployments } }: Connection,
    cost: { subjectId: string; amountMicroUsd: number; sliceEnd: number },
  ) =>
    db
      .update(deployments)
      .set({
        totalCostMicroUsd: sql`${deployments.totalCostMicroUsd} + ${cost.amountMicroUsd}`,
        lastCreditDeductionAt: sql`CASE WHEN ${deployments.lastCreditDeductionAt} > ${cost.sliceEnd}
          THEN ${deployments.lastCreditDeductionAt} ELSE ${cost.sliceEnd} END`,
      })
      .where(eq(deployments.id, cost.subjectId)),
);

export function ledgerWriter(connection: Connection): LedgerWriter {
  const {
    db,
    tables: { ledgerEntries, segments },
  } = connection;
  return {
    ...ledgerReader(connection),
    insertSegment: async (record) => void (await db.insert(segments).values(record)),
    updateSegment: async (record) => void (await updateSegment(connection, record)),
    insertSlice: async (record) => void (await insertSlice(connection, record)),
    book: async (transaction, entries) => {
      assertBalanced(transaction, entries);
      await insertTransaction(connection, transaction);
      await db
        .insert(ledgerEntries)
        .values(entries.map((entry) => ({ ...entry, transactionId: transaction.id })));
      await addToBalances(connection, entries);
    },
    recordCost: async (kind, subjectId, amountMicroUsd, sliceEnd) =>
      void (kind === 'volume'
        ? await addVolumeCost(connection, { subjectId, amountMicroUsd })
        : await addDeploymentCost(connection, { subjectId, amountMicroUsd, sliceEnd })),
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
  // Sorted, so that two transactions that write the same teams cannot deadlock.
  const sorted = [...entries].sort((a, b) => (a.account < b.account ? -1 : 1));
  for (const { account, amountMicroUsd } of sorted) {
    if (!account.startsWith('team:')) continue;
    const id = account.slice('team:'.length);
    const changed = await addToBalance(connection, { id, amountMicroUsd });
    if (changed.length === 0) throw new Error(`There is no team of the account ${account}.`);
  }
}
