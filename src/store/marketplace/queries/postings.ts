import { asc, type Column, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  Posting,
  SegmentRecord,
  SubjectKind,
} from '../../../marketplace/model/ledger-records.ts';
import type { BilledSegment } from '../../../marketplace/model/ledger-store.ts';
import { prepared } from '../../queries/prepared.ts';
import type { Connection } from './connection.ts';

interface Booking {
  transaction: LedgerTransactionRecord;
  entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[];
}

const addToBalance = prepared(
  ({ db, teams }: Connection, { id, amountMicroUsd }: { id: string; amountMicroUsd: number }) =>
    db
      .update(teams)
      .set({ balanceMicroUsd: sql`${teams.balanceMicroUsd} + ${amountMicroUsd}` })
      .where(eq(teams.id, id))
      .returning({ id: teams.id }),
);

/** Books transactions, and updates the balances of their teams. */
export async function book(connection: Connection, bookings: readonly Booking[]): Promise<void> {
  const { db, ledgerEntries, ledgerTransactions } = connection;
  for (const booking of bookings) assertBalanced(booking);
  const transactions = bookings.map(({ transaction }) => transaction);
  await inParts(transactions, (part) => db.insert(ledgerTransactions).values(part));
  const entries = bookings.flatMap(({ transaction, entries: own }) =>
    own.map((entry) => ({ ...entry, transactionId: transaction.id })),
  );
  await inParts(entries, (part) => db.insert(ledgerEntries).values(part));
  const sums = new Map<string, number>();
  for (const { entries } of bookings)
    for (const { account, amountMicroUsd } of entries)
      if (account.startsWith('team:')) sums.set(account, (sums.get(account) ?? 0) + amountMicroUsd);
  await addToBalances(connection, sums);
}

async function addToBalances(connection: Connection, sums: ReadonlyMap<string, number>): Promise<void> {
  const amounts = [...sums].map(([account, amount]) => [account.slice('team:'.length), amount] as const);
  const [[first, amountMicroUsd] = ['', 0]] = amounts;
  const changed =
    amounts.length === 1
      ? await addToBalance(connection, { id: first, amountMicroUsd })
      : await addToMany(connection, amounts);
  const known = new Set(changed.map(({ id }) => id));
  const missing = amounts.find(([id]) => !known.has(id));
  if (missing !== undefined) throw new Error(`There is no team of the account team:${missing[0]}.`);
}

async function addToMany(
  { db, teams, locking }: Connection,
  amounts: readonly (readonly [id: string, amountMicroUsd: number])[],
): Promise<{ id: string }[]> {
  if (amounts.length === 0) return [];
  const isNamed = inArray(
    teams.id,
    amounts.map(([id]) => id),
  );
  // Locks in the order of ids, so that two transactions that write the same teams cannot deadlock.
  const found = await locking.rows(
    db.select({ id: teams.id }).from(teams).where(isNamed).orderBy(asc(teams.id)),
  );
  const rows = amounts.map(([id, amountMicroUsd]) => row(id, amountMicroUsd));
  await db
    .update(teams)
    .set({ balanceMicroUsd: sql`${teams.balanceMicroUsd} + added.column2` })
    .from(sql`(VALUES ${sql.join(rows, sql`, `)}) AS added`)
    .where(sql`${teams.id} = added.column1`);
  return found;
}

/** A statement takes at most 65,535 values in PostgreSQL, and 32,766 in SQLite. */
const ROWS_AT_ONCE = 1_000;

async function inParts<T>(rows: readonly T[], insert: (part: T[]) => PromiseLike<unknown>): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE)
    await insert(rows.slice(from, from + ROWS_AT_ONCE));
}

/** @throws {Error} if the program made an invalid booking */
function assertBalanced({ transaction: { id }, entries }: Booking): void {
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

/** Writes the postings of many segments in a few statements. */
export async function post(connection: Connection, postings: readonly Posting[]): Promise<void> {
  if (postings.length === 0) return;
  await updatePosted(connection, postings);
  const taken = postings.flatMap(({ segment, usage }) => (usage === null ? [] : [{ segment, usage }]));
  if (taken.length === 0) return;
  await book(
    connection,
    taken.map(({ usage }) => usage),
  );
  const slices = taken.map(({ segment, usage: { transaction, amountMicroUsd } }) => ({
    segmentId: segment.id,
    sliceEnd: transaction.at,
    amountMicroUsd,
    transactionId: transaction.id,
  }));
  await inParts(slices, (part) => connection.db.insert(connection.slices).values(part));
  for (const kind of ['deployment', 'volume'] as const) {
    const rows = [...costsOf(kind, taken)].map(([id, { amountMicroUsd, at }]) => row(id, amountMicroUsd, at));
    if (rows.length > 0) await addCosts(connection, kind, rows);
  }
}

/** One row per subject, since an UPDATE applies only one row of a VALUES list to each row that it changes. */
function costsOf(
  kind: SubjectKind,
  taken: readonly { segment: SegmentRecord; usage: NonNullable<Posting['usage']> }[],
): Map<string, { amountMicroUsd: number; at: number }> {
  const costs = new Map<string, { amountMicroUsd: number; at: number }>();
  for (const { segment, usage } of taken) {
    if (segment.subjectKind !== kind) continue;
    const { amountMicroUsd = 0, at = Number.NEGATIVE_INFINITY } = costs.get(segment.subjectId) ?? {};
    costs.set(segment.subjectId, {
      amountMicroUsd: amountMicroUsd + usage.amountMicroUsd,
      at: Math.max(at, usage.transaction.at),
    });
  }
  return costs;
}

/** Both databases name the columns of a VALUES list column1, column2 … */
function row(id: string, ...numbers: readonly number[]): SQL {
  const columns = numbers.map((number) => sql`CAST(${number} AS BIGINT)`);
  return sql`(${sql.join([sql`CAST(${id} AS TEXT)`, ...columns], sql`, `)})`;
}

/** The cost of a segment since its last posting, rounded down, before discounts. The product may exceed a BIGINT. */
export function accruedOf(
  {
    originalRateMicroUsdPerHour: rate,
    postedUntil,
  }: Record<'originalRateMicroUsdPerHour' | 'postedUntil', Column>,
  now: number,
): SQL {
  const at = sql`CAST(${now} AS BIGINT)`;
  const ms = sql`(CASE WHEN ${postedUntil} < ${at} THEN ${at} - ${postedUntil} ELSE 0 END)`;
  return sql`(${rate} / 3600000 * ${ms} + ${rate} % 3600000 * ${ms} / 3600000)`;
}

async function updatePosted({ db, segments }: Connection, postings: readonly Posting[]): Promise<void> {
  // Of several slices of one segment, the last has the current posting state.
  const last = new Map(postings.map(({ segment }) => [segment.id, segment]));
  const rows = [...last.values()].map((segment) =>
    row(segment.id, segment.postedUntil, segment.postedMicroUsd),
  );
  await db
    .update(segments)
    .set({ postedUntil: sql`posted.column2`, postedMicroUsd: sql`posted.column3` })
    .from(sql`(VALUES ${sql.join(rows, sql`, `)}) AS posted`)
    .where(sql`${segments.id} = posted.column1`);
}

async function addCosts(
  { db, deployments, volumes }: Connection,
  kind: SubjectKind,
  rows: readonly SQL[],
): Promise<void> {
  const costs = sql`(VALUES ${sql.join([...rows], sql`, `)}) AS cost`;
  if (kind === 'volume')
    await db
      .update(volumes)
      .set({ totalCostMicroUsd: sql`${volumes.totalCostMicroUsd} + cost.column2` })
      .from(costs)
      .where(sql`${volumes.id} = cost.column1`);
  else
    await db
      .update(deployments)
      .set({
        totalCostMicroUsd: sql`${deployments.totalCostMicroUsd} + cost.column2`,
        lastCreditDeductionAt: sql`CASE WHEN ${deployments.lastCreditDeductionAt} > cost.column3
          THEN ${deployments.lastCreditDeductionAt} ELSE cost.column3 END`,
      })
      .from(costs)
      .where(sql`${deployments.id} = cost.column1`);
}

/** Locks subjects first, as all code does, so that two transactions cannot deadlock. */
export async function lockBilled(
  { db, deployments, segments, volumes, locking }: Connection,
  wanted: readonly SegmentRecord[],
): Promise<BilledSegment[]> {
  const idsOf = (kind: SubjectKind) =>
    wanted.filter(({ subjectKind }) => subjectKind === kind).map(({ subjectId }) => subjectId);
  const foundDeployments = await locking.rows(
    db
      .select({
        id: deployments.id,
        status: deployments.status,
        confirmedUntil: deployments.observedAt,
        discountPercentage: deployments.discountPercentage,
      })
      .from(deployments)
      .where(inArray(deployments.id, idsOf('deployment')))
      .orderBy(asc(deployments.id)),
  );
  const foundVolumes = await locking.rows(
    db
      .select({ id: volumes.id, discountPercentage: volumes.discountPercentage })
      .from(volumes)
      .where(inArray(volumes.id, idsOf('volume')))
      .orderBy(asc(volumes.id)),
  );
  const subjects = new Map<string, Omit<BilledSegment, 'segment'>>([
    ...foundDeployments.map(({ id, ...subject }) => [id, subject] as const),
    ...foundVolumes.map(
      ({ id, discountPercentage }) =>
        [id, { status: null, confirmedUntil: null, discountPercentage }] as const,
    ),
  ]);
  const found = await locking.rows(
    db
      .select()
      .from(segments)
      .where(
        inArray(
          segments.id,
          wanted.map(({ id }) => id),
        ),
      )
      .orderBy(asc(segments.id)),
  );
  return found.flatMap((segment) => {
    const subject = subjects.get(segment.subjectId);
    return subject === undefined || segment.endedAt !== null ? [] : [{ segment, ...subject }];
  });
}
