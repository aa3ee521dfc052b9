import { discounted } from '../discounts/price.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import type { LedgerReader } from '../model/ledger-store.ts';
import type { Reader, Store } from '../model/store.ts';
import { costOf } from './price-change.ts';
import { statementProblems } from './statements.ts';

export interface LedgerFinding {
  /** The id of a transaction, team, segment, deployment or volume. */
  id: string;
  problem: string;
}

export interface LedgerVerdict {
  findings: LedgerFinding[];
  /** How many rows were checked. */
  counts: { teams: number; segments: number; slices: number; subjects: number };
}

const PAGE = 500;
const MAX_TRANSACTIONS = 100;

/**
 * Verifies on one snapshot that transactions net to zero, balances are the sums of entries, slices equal the cost of
 * segments, segments cover each subject without gaps or overlaps, and monthly statements add up to the entries.
 */
export async function verifyLedger(store: Pick<Store, 'snapshot'>, now: number): Promise<LedgerVerdict> {
  return store.snapshot(async (read) => {
    const findings = await verifyTransactions(read.ledger);
    const teams = await verifyBalances(read, findings);
    findings.push(...(await statementProblems(read.ledger, now)));
    const { segments, slices } = await verifySegments(read.ledger, now, findings);
    const { subjects, covered } = await verifySubjects(read.ledger, findings);
    if (covered !== segments)
      findings.push({
        id: 'segments',
        problem: `${segments - covered} of ${segments} refer to a deployment or volume that does not exist`,
      });
    return { findings, counts: { teams, segments, slices, subjects } };
  });
}

async function verifyTransactions(ledger: LedgerReader): Promise<LedgerFinding[]> {
  const malformed = await ledger.malformed(MAX_TRANSACTIONS);
  const findings = malformed.map(({ id, isBalanced }) => ({
    id,
    problem: isBalanced
      ? 'its entries or its slice do not match its kind'
      : 'its entries do not add up to zero',
  }));
  const { transactions, entries, usages, uses } = await ledger.countRows();
  if (findings.length > 0) return findings;
  if (entries !== 2 * transactions)
    findings.push({
      id: 'entries',
      problem: `${entries} entries for ${transactions} transactions: expected two per transaction`,
    });
  if (uses !== usages)
    findings.push({ id: 'slices', problem: `${uses} slices for ${usages} usage transactions` });
  return findings;
}

async function verifyBalances(read: Reader, findings: LedgerFinding[]): Promise<number> {
  const sums = new Map((await read.ledger.balances()).map((sum) => [sum.account, sum.amountMicroUsd]));
  const teams = await read.teams.list();
  for (const { id, balanceMicroUsd } of teams) {
    const sum = sums.get(`team:${id}`) ?? 0;
    if (sum !== balanceMicroUsd)
      findings.push({
        id,
        problem: `its stored balance is ${balanceMicroUsd}, its entries add up to ${sum}`,
      });
  }
  const known = new Set(teams.map(({ id }) => `team:${id}`));
  for (const account of sums.keys())
    if (account.startsWith('team:') && !known.has(account))
      findings.push({ id: account, problem: 'it has entries, but its team does not exist' });
  return teams.length;
}

type Audited = Awaited<ReturnType<LedgerReader['auditSegments']>>[number];

async function verifySegments(
  ledger: LedgerReader,
  now: number,
  findings: LedgerFinding[],
): Promise<{ segments: number; slices: number }> {
  const counts = { segments: 0, slices: 0 };
  for await (const audited of pages(
    (page) => ledger.auditSegments(page),
    ({ segment }) => segment.id,
  )) {
    counts.segments += 1;
    counts.slices += audited.slices;
    for (const problem of segmentProblems(audited, now)) findings.push({ id: audited.segment.id, problem });
  }
  return counts;
}

function segmentProblems({ segment, slicesMicroUsd, lastSliceEnd, wrongAt }: Audited, now: number): string[] {
  const { rateMicroUsdPerHour: rate, startedAt, endedAt, postedUntil, postedMicroUsd } = segment;
  const { originalRateMicroUsdPerHour: originalRate, discountPercentage } = segment;
  const cost = costOf(rate, postedUntil - startedAt);
  const costOfSlices = costOf(rate, (lastSliceEnd ?? startedAt) - startedAt);
  return [
    ...(rate === discounted(originalRate, discountPercentage)
      ? []
      : [`it costs ${rate} per hour, which is not ${discountPercentage} % off ${originalRate}`]),
    ...(postedMicroUsd === cost ? [] : [`it has posted ${postedMicroUsd}, but it costs ${cost}`]),
    ...(slicesMicroUsd === postedMicroUsd
      ? []
      : [`its slices add up to ${slicesMicroUsd}, it has posted ${postedMicroUsd}`]),
    ...(slicesMicroUsd === costOfSlices ? [] : [`its slices are not contiguous`]),
    ...(wrongAt === null ? [] : [`its slices up to ${wrongAt} do not add up to its cost by then`]),
    ...(endedAt === null || endedAt === postedUntil
      ? []
      : ['it has ended, but it is not posted up to its end']),
    ...(postedUntil >= startedAt ? [] : ['it is posted only up to a time before its start']),
    ...(postedUntil <= now ? [] : ['it is posted beyond the current time']),
  ];
}

async function verifySubjects(
  ledger: LedgerReader,
  findings: LedgerFinding[],
): Promise<{ subjects: number; covered: number }> {
  const counts = { subjects: 0, covered: 0 };
  for await (const subject of pages(
    (page) => ledger.auditSubjects(page),
    ({ id }) => id,
  )) {
    const { kind, id, teamId, from, until, totalCostMicroUsd } = subject;
    const segments = await ledger.segmentsOf(kind, id);
    counts.subjects += 1;
    counts.covered += segments.length;
    for (const problem of coverageProblems(segments, from, until)) findings.push({ id, problem });
    for (const segment of segments)
      if (segment.teamId !== teamId)
        findings.push({
          id: segment.id,
          problem: `it is charged to a team other than ${teamId}, the owner of the ${kind}`,
        });
    const posted = segments.reduce((sum, { postedMicroUsd }) => sum + postedMicroUsd, 0);
    if (posted !== totalCostMicroUsd)
      findings.push({
        id,
        problem: `its total cost is ${totalCostMicroUsd}, but its segments have posted ${posted}`,
      });
  }
  return counts;
}

/** The gaps and overlaps in the segments of a subject billed from `from` until `until`; null: still billed. */
export function coverageProblems(
  segments: readonly Pick<SegmentRecord, 'startedAt' | 'endedAt'>[],
  from: number,
  until: number | null,
): string[] {
  if (from === until && segments.length === 0) return [];
  const ordered = segments.toSorted(
    (a, b) => a.startedAt - b.startedAt || (a.endedAt ?? Infinity) - (b.endedAt ?? Infinity),
  );
  const problems: string[] = [];
  let reached: number | null = from;
  for (const { startedAt, endedAt } of ordered) {
    if (startedAt !== reached)
      problems.push(
        `a segment starts at ${startedAt}, but the segments before it are covered up to ${reached ?? 'now'}`,
      );
    reached = endedAt;
  }
  if (reached !== until)
    problems.push(`it is covered up to ${reached ?? 'now'}, but should be covered up to ${until ?? 'now'}`);
  return problems;
}

async function* pages<T>(
  readPage: (page: { afterId?: string; limit: number }) => Promise<T[]>,
  idOf: (item: T) => string,
): AsyncIterable<T> {
  let afterId: string | undefined;
  for (;;) {
    const page = await readPage({ limit: PAGE, afterId });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    afterId = idOf(last);
  }
}
