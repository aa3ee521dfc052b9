import { verifyLedger } from '../../../src/marketplace/ledger/verify-ledger.ts';
import type { SegmentRecord, SubjectKind } from '../../../src/marketplace/model/ledger-records.ts';
import type { Store } from '../../../src/marketplace/model/store.ts';
import { hold } from '../../kernel/violation.ts';
import type { Cause } from './causes.ts';
import type { CheckedWorld } from './inspector.ts';
import { costOf, integrate } from './integral.ts';

/** I20, I21, I22: the books agree with the recorded events. */
export async function booksAreExact(world: CheckedWorld): Promise<void> {
  const { inspector, database } = world;
  const { read } = database.store;
  const used = new Map<string, bigint>();
  const look = async (kind: SubjectKind, id: string, teamId: string, causes: readonly Cause[]) => {
    const segments = await read.ledger.segmentsOf(kind, id);
    const discounts = await read.discounts.ofTeam(teamId);
    segmentsAreExact(id, segments, integrate(causes, discounts, inspector.postedBefore.get(id) ?? []));
    const posted = segments.reduce((sum, { postedMicroUsd }) => sum + BigInt(postedMicroUsd), 0n);
    used.set(teamId, (used.get(teamId) ?? 0n) + posted);
    return posted;
  };
  for (const { record, causes } of inspector.deployments.values()) {
    const posted = await look('deployment', record.id, record.teamId, causes);
    const now = await read.deployments.byId(record.id);
    costsWhatWasPosted(record.id, now?.totalCostMicroUsd, posted);
    pausesAddUp(record.id, causes, now?.pausedMs ?? -1);
  }
  for (const { record, causes } of inspector.volumes.values()) {
    const posted = await look('volume', record.id, record.teamId, causes);
    costsWhatWasPosted(record.id, (await read.volumes.byId(record.id))?.totalCostMicroUsd, posted);
  }
  await balancesAddUp(world, database.store, used);
}

/** I20: production's own check finds nothing. A server whose clock is ahead posts up to its own time. */
export async function ledgerVerifies({ database, scheduler, clockErrorMs }: CheckedWorld): Promise<void> {
  const latest = Math.floor(scheduler.now) + clockErrorMs;
  const { findings } = await verifyLedger(database.store, latest);
  hold('I20', findings.length === 0, () => findings.map(({ id, problem }) => `${id}: ${problem}`).join('; '));
}

function segmentsAreExact(
  id: string,
  segments: readonly SegmentRecord[],
  expected: ReturnType<typeof integrate>,
): void {
  const told = segments
    .filter(({ startedAt, endedAt }) => startedAt !== endedAt)
    .map((it) => ({ ...it, text: `${it.startedAt}–${it.endedAt} ${it.state} ${it.rateMicroUsdPerHour}` }));
  // A price that begins later has no segment yet.
  const begun = told.length;
  const wanted = expected
    .filter(({ from, until }) => from !== until)
    .map((it) => `${it.from}–${it.until} ${it.state} ${it.rate}`);
  const last = told.at(-1);
  for (const [index, { text, postedUntil, startedAt, endedAt }] of told.entries()) {
    const right = endedAt === null ? wanted[index]?.replace(/–\S+/, '–null') : wanted[index];
    // A segment with nothing posted gets its price when something is.
    if (postedUntil === startedAt && right !== undefined) continue;
    hold('I20', text === right, () => `${id} has the segment ${text}, expected ${right}`, [id]);
  }
  const isOver = last !== undefined && last.endedAt !== null;
  hold(
    'I20',
    isOver ? wanted.length === begun : begun > 0 || wanted.length === 0,
    () => `${id} has ${begun} segments, expected ${wanted.join('; ')}`,
    [id],
  );
  const pieces = expected.filter(({ from, until }) => from !== until);
  for (const [index, { postedMicroUsd, postedUntil, endedAt }] of told.entries()) {
    const piece = pieces[index];
    const cost = piece === undefined ? -1n : costOf(piece, endedAt ?? postedUntil);
    hold('I20', BigInt(postedMicroUsd) === cost, () => `${id} was charged ${postedMicroUsd} for ${cost}`, [
      id,
    ]);
  }
}

function costsWhatWasPosted(id: string, total: number | undefined, posted: bigint): void {
  hold('I20', BigInt(total ?? -1) === posted, () => `${id} shows ${total}, and was charged ${posted}`, [id]);
}

function pausesAddUp(id: string, causes: readonly Cause[], pausedMs: number): void {
  let sum = 0;
  for (const [index, { state, at }] of causes.entries())
    if (state === 'stopped') sum += (causes[index + 1]?.at ?? at) - at;
  hold('I22', sum === pausedMs, () => `${id} was stopped for ${sum} ms, and shows ${pausedMs}`, [id]);
}

async function balancesAddUp(
  { inspector }: CheckedWorld,
  { read }: Store,
  used: ReadonlyMap<string, bigint>,
): Promise<void> {
  const sums = new Map((await read.ledger.balances()).map((it) => [it.account, BigInt(it.amountMicroUsd)]));
  const teams = await read.teams.list();
  for (const { id, balanceMicroUsd } of teams) {
    const expected = (inspector.credits.get(id) ?? 0n) - (used.get(id) ?? 0n);
    const entries = sums.get(`team:${id}`) ?? 0n;
    hold(
      'I21',
      BigInt(balanceMicroUsd) === expected && entries === expected,
      () => `${id} has ${balanceMicroUsd}, entries of ${entries}, and should have ${expected}`,
    );
  }
  hold('I21', (await read.ledger.malformed(1)).length === 0, () => 'a transaction is not that of its kind');
}
