import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
  sum,
} from 'drizzle-orm';
import type { SegmentRecord, SubjectKind } from '../../../marketplace/model/ledger-records.ts';
import type { LedgerReader, LedgerWriter } from '../../../marketplace/model/ledger-store.ts';
import { DAY_MS } from '../../../ports/clock.ts';
import { noLocking } from '../../queries/connection.ts';
import { prepared } from '../../queries/prepared.ts';
import { firstOf } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';
import { ledgerAudit } from './ledger-audit.ts';
import { isAfter, isLater } from './pages.ts';
import { accruedOf, book, lockBilled, post } from './postings.ts';
import { statementReader } from './statements.ts';
import { becomesDue } from './teams.ts';
import { burnByProvider, usedSegments } from './usage.ts';

const segmentById = prepared(({ db, segments, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(segments).where(eq(segments.id, id))),
);

const segmentsOf = prepared(
  ({ db, segments }: Connection, subject: { kind: SubjectKind; subjectId: string }) =>
    db
      .select()
      .from(segments)
      .where(and(eq(segments.subjectKind, subject.kind), eq(segments.subjectId, subject.subjectId)))
      .orderBy(asc(segments.startedAt), asc(segments.id)),
);

const openSegmentsOfTeam = prepared(
  ({ db, deployments, segments }: Connection, { teamId }: { teamId: string }) =>
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

/** Read from the index alone. Each segment may be rounded by one micro-USD. */
const mostAccruedOfTeam = prepared(
  ({ db, segments }: Connection, { teamId, now }: { teamId: string; now: number }) => {
    return db
      .select({ most: sql`coalesce(sum(${accruedOf(segments, now)} + 1), 0)`.mapWith(Number) })
      .from(segments)
      .where(and(eq(segments.teamId, teamId), isNull(segments.endedAt)));
  },
);

const openSegments = prepared(
  ({ db, segments }: Connection, { afterId, limit }: { afterId: string; limit: number }) =>
    db
      .select()
      .from(segments)
      .where(and(isNull(segments.endedAt), gt(segments.id, afterId)))
      .orderBy(asc(segments.id))
      .limit(limit),
);

const billedSegmentsOfTeam = prepared(
  ({ db, deployments, segments, volumes }: Connection, { teamId }: { teamId: string }) =>
    db
      .select({
        segment: segments,
        status: deployments.status,
        confirmedUntil: deployments.observedAt,
        discountPercentage: sql<number>`coalesce(${deployments.discountPercentage}, ${volumes.discountPercentage})`,
      })
      .from(segments)
      .leftJoin(
        deployments,
        and(eq(segments.subjectKind, sql`'deployment'`), eq(deployments.id, segments.subjectId)),
      )
      .leftJoin(volumes, and(eq(segments.subjectKind, sql`'volume'`), eq(volumes.id, segments.subjectId)))
      .where(and(eq(segments.teamId, teamId), isNull(segments.endedAt)))
      .orderBy(asc(segments.id)),
);

/** A subquery that reads a few rows, each by its key. */
const AMOUNT_OF_TEAM = sql<number>`(SELECT amount_micro_usd FROM ledger_entries AS entry
  WHERE entry.transaction_id = ledger_transactions.id AND entry.account = 'team:' || ledger_transactions.team_id)`;

export function ledgerReader(connection: Connection): LedgerReader {
  const { db, deployments, ledgerEntries, ledgerTransactions, segments, slices, locking } = connection;
  const findSegment = (condition: SQL | undefined): Promise<SegmentRecord | null> =>
    firstOf(locking.rows(db.select().from(segments).where(condition)));
  return {
    ...ledgerAudit(connection),
    ...statementReader(connection),
    segmentById: (id) => firstOf(segmentById(connection, { id })),
    segmentsOf: (kind, subjectId) => segmentsOf(connection, { kind, subjectId }),
    openSegmentOf: async (kind, subjectId) => {
      const isOpenOf = and(
        eq(segments.subjectKind, kind),
        eq(segments.subjectId, subjectId),
        isNull(segments.endedAt),
      );
      const found = await findSegment(isOpenOf);
      // After the wait for the lock, the row may be closed, and this statement does not see the next open row.
      return found === null && locking !== noLocking ? findSegment(isOpenOf) : found;
    },
    openSegmentsOfTeam: (teamId) => openSegmentsOfTeam(connection, { teamId }),
    mostAccrued: async (teamId, now) => {
      const [found] = await mostAccruedOfTeam(connection, { teamId, now });
      return found?.most ?? 0;
    },
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
    billedSegmentsOfTeam: (teamId) => billedSegmentsOfTeam(connection, { teamId }),
    dueSegments: async ({ now, sliceMs, after, limit }) => {
      const slice = sql.raw(String(sliceMs));
      const found = await db
        .select({ segment: segments })
        .from(segments)
        .leftJoin(
          deployments,
          and(eq(segments.subjectKind, 'deployment'), eq(deployments.id, segments.subjectId)),
        )
        .where(
          and(
            isNull(segments.endedAt),
            lt(segments.postedUntil, Math.floor(now / sliceMs) * sliceMs),
            or(
              eq(segments.subjectKind, 'volume'),
              gt(sql`${deployments.observedAt} / ${slice} * ${slice}`, segments.postedUntil),
            ),
            isLater(segments.postedUntil, segments.id, after),
          ),
        )
        .orderBy(asc(segments.postedUntil), asc(segments.id))
        .limit(limit);
      return found.map(({ segment }) => segment);
    },
    slicesOf: async (segmentId) =>
      db.select().from(slices).where(eq(slices.segmentId, segmentId)).orderBy(asc(slices.sliceEnd)),
    daysOf: async (segmentId) => {
      const day = sql<number>`(${slices.sliceEnd} - 1) / ${sql.raw(String(DAY_MS))}`;
      const found = await db
        .select({ day: day.mapWith(Number), amountMicroUsd: sum(slices.amountMicroUsd).mapWith(Number) })
        .from(slices)
        .where(eq(slices.segmentId, segmentId))
        .groupBy(day)
        .orderBy(day);
      return found.map((each) => ({ ...each, day: each.day * DAY_MS }));
    },
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
    bookings: async ({ after, limit }) => {
      const { kind, at, id } = ledgerTransactions;
      return db
        .select({ ...getTableColumns(ledgerTransactions), amountMicroUsd: AMOUNT_OF_TEAM.mapWith(Number) })
        .from(ledgerTransactions)
        .where(and(sql`${kind} <> 'usage'`, isAfter(at, id, after)))
        .orderBy(desc(at), desc(id))
        .limit(limit);
    },
    used: (page) => usedSegments(connection, page),
    burnByProvider: () => burnByProvider(connection),
    usageOf: async (teamId, from, to) => {
      const [used] = await db
        .select({
          amount: sql<number>`coalesce(-sum(${ledgerEntries.amountMicroUsd}), 0)`.mapWith(Number),
        })
        .from(ledgerTransactions)
        .innerJoin(ledgerEntries, eq(ledgerEntries.transactionId, ledgerTransactions.id))
        .where(
          and(
            eq(ledgerTransactions.teamId, teamId),
            eq(ledgerTransactions.kind, 'usage'),
            gt(ledgerTransactions.at, from),
            lte(ledgerTransactions.at, to),
            eq(ledgerEntries.account, `team:${teamId}`),
          ),
        );
      return used?.amount ?? 0;
    },
  };
}

const updateSegment = prepared(({ db, segments }: Connection, record: SegmentRecord) =>
  db.update(segments).set(record).where(eq(segments.id, record.id)),
);

export function ledgerWriter(connection: Connection): LedgerWriter {
  const { db, segments } = connection;
  return {
    ...ledgerReader(connection),
    insertSegment: async (record) => {
      await db.insert(segments).values(record);
      await becomesDue(connection, record.teamId);
    },
    updateSegment: async (record) => {
      await updateSegment(connection, record);
      await becomesDue(connection, record.teamId);
    },
    post: (postings) => post(connection, postings),
    book: async (transaction, entries) => {
      await book(connection, [{ transaction, entries }]);
      await becomesDue(connection, transaction.teamId);
    },
    lockBilled: (wanted) => lockBilled(connection, wanted),
  };
}
