import { notFound } from '../contract/errors.ts';
import type { Discounts } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { BalanceReading } from '../model/ledger-records.ts';
import type { OpenDeploymentSegment } from '../model/ledger-store.ts';
import type { TeamRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { unpostedOf } from './price-change.ts';

type LedgerReader = Pick<Reader, 'ledger' | 'discounts'>;

/** How many deployments one query reads. */
const PAGE = 500;

/**
 * The unposted cost by `at`, as far as providers have confirmed it. A provider that is silent for hours thus takes no
 * balance to zero.
 */
export async function accrued(read: LedgerReader, teamId: string, at: number): Promise<number> {
  const segments = await read.ledger.openSegmentsOfTeam(teamId);
  if (segments.length === 0) return 0;
  const discounts = await read.discounts.ofTeam(teamId);
  return segments.reduce((sum, open) => sum + unposted(open, discounts, at), 0);
}

/** The cost in micro-USD: the charged amount plus {@link accrued}. It grows exactly as the balance falls. */
export async function costsOf(
  read: LedgerReader,
  records: readonly DeploymentRecord[],
  at: number,
): Promise<(record: DeploymentRecord) => number> {
  const billed = records.filter(({ status }) => status === 'running' || status === 'stopped');
  const discounts = new Map<string, Discounts>();
  for (const teamId of new Set(billed.map((record) => record.teamId)))
    discounts.set(teamId, await read.discounts.ofTeam(teamId));
  const costs = new Map<string, number>();
  for (let from = 0; from < billed.length; from += PAGE) {
    const ids = billed.slice(from, from + PAGE).map(({ id }) => id);
    for (const open of await read.ledger.openSegmentsOfDeployments(ids)) {
      const { subjectId, teamId } = open.segment;
      costs.set(subjectId, open.totalCostMicroUsd + unposted(open, discounts.get(teamId) ?? [], at));
    }
  }
  return ({ id, totalCostMicroUsd }) => costs.get(id) ?? totalCostMicroUsd;
}

/** The team's balance at `at` and its rate of decrease, from its row and its open segments. */
export function readingOf(
  { balanceMicroUsd }: Pick<TeamRecord, 'balanceMicroUsd'>,
  open: readonly OpenSegment[],
  discounts: Discounts,
  at: number,
): BalanceReading {
  return {
    at,
    balanceMicroUsd: balanceMicroUsd - open.reduce((sum, each) => sum + unposted(each, discounts, at), 0),
    burnMicroUsdPerHour: open.reduce((sum, { segment }) => sum + segment.rateMicroUsdPerHour, 0),
  };
}

type OpenSegment = Pick<OpenDeploymentSegment, 'segment' | 'confirmedUntil'>;

/** The cost of an open segment by `at` that is not charged yet: see {@link accrued}. */
export function unposted({ segment, confirmedUntil }: OpenSegment, discounts: Discounts, at: number): number {
  const until = Math.min(at, confirmedUntil ?? at);
  return until > segment.postedUntil ? unpostedOf(segment, discounts, until) : 0;
}

type BalanceReader = Pick<Reader, 'teams' | 'ledger' | 'discounts'>;

/** A lower bound of {@link realTimeBalance}, from one sum. @throws {ApiError} NOT_FOUND */
export async function balanceLowerBound(
  { teams, ledger }: Pick<Reader, 'teams' | 'ledger'>,
  teamId: string,
  now: number,
): Promise<number> {
  // Locks the team first, so that the sum belongs to the same state.
  const team = await teams.byId(teamId);
  if (team === null) throw notFound('team');
  return team.balanceMicroUsd - (await ledger.mostAccrued(teamId, now));
}

/** The stored balance less the accrued cost, in micro-USD. @throws {ApiError} NOT_FOUND */
export async function realTimeBalance(read: BalanceReader, teamId: string, now: number): Promise<number> {
  const team = await read.teams.byId(teamId);
  if (team === null) throw notFound('team');
  return team.balanceMicroUsd - (await accrued(read, teamId, now));
}
