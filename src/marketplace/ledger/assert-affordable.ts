import { toDollars, usdFromMicroUsd } from '../../contract/values.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { bestDiscount, type Discounts, discounted } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { ActiveByPrice, Reader } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { Providers } from '../providers/provider.ts';
import { hourlyRate, volumeProviderOf } from '../providers/volume-provider.ts';
import { balanceLowerBound, realTimeBalance } from './balance.ts';
import { ceilingCostOf } from './price-change.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export type SpendingReader = Pick<Reader, 'teams' | 'ledger' | 'discounts' | 'deployments' | 'volumes'>;

/** A new cost that a team is about to take on. */
export interface Commitment {
  teamId: string;
  /** The new rate after discounts, in micro-USD per hour. */
  rateMicroUsd: number;
  /** The deployment or volume whose current rate this replaces; absent: it is new. */
  insteadOf?: string;
  /** The minimum runtime of a deployment. */
  minimumRuntimeMinutes?: number;
}

/**
 * Requires that the balance covers all costs plus this one for the configured hours, or for the minimum runtime if that
 * is longer.
 * Locks the team's row first, so that the second of two requests sees the first.
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: insufficient_balance`
 */
export async function assertAffordable(
  { options, providers }: Pick<Deps, 'options' | 'providers'>,
  read: SpendingReader,
  { teamId, rateMicroUsd, insteadOf, minimumRuntimeMinutes = 0 }: Commitment,
  now: number,
): Promise<void> {
  // Locks the team's row: commitments of other requests are visible from here on.
  const least = await balanceLowerBound(read, teamId, now);
  const committed = await committedRate(read, providers, teamId, now, insteadOf);
  const lastsMs = Math.max(options.spending.balanceForMs, minimumRuntimeMinutes * MINUTE_MS);
  const needed = ceilingCostOf(committed + rateMicroUsd, lastsMs);
  if (least > 0 && least >= needed) return;
  // The exact sum is computed only for a team close to its limit.
  const balance = await realTimeBalance(read, teamId, now);
  if (balance > 0 && balance >= needed) return;
  const hours = lastsMs / HOUR_MS;
  throw new ApiError(
    'VALIDATION_ERROR',
    `The team has ${toDollars(balance)} but needs ${toDollars(needed)}: ${toHours(hours)} of its current costs ` +
      `(${toDollars(committed)} per hour) plus this one (${toDollars(rateMicroUsd)} per hour). ` +
      'Top up the balance, or end a deployment or volume first.',
    {
      details: {
        reason: 'insufficient_balance',
        balance: usdFromMicroUsd(balance),
        needed: usdFromMicroUsd(needed),
        hours,
        currentHourlyRate: usdFromMicroUsd(committed),
        newHourlyRate: usdFromMicroUsd(rateMicroUsd),
      },
    },
  );
}

function toHours(hours: number): string {
  const shown = Number(hours.toFixed(2));
  return `${shown} ${shown === 1 ? 'hour' : 'hours'}`;
}

/**
 * Refuses attachments of a team without balance: its volumes are frozen.
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: insufficient_balance`
 */
export async function assertNotFrozen(
  read: Pick<Reader, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  now: number,
): Promise<void> {
  const balance = await realTimeBalance(read, teamId, now);
  if (balance > 0) return;
  throw new ApiError(
    'VALIDATION_ERROR',
    `The balance of the team is used up (${toDollars(balance)}), so its volumes are frozen and cannot be ` +
      'attached. Top up the balance first.',
    { details: { reason: 'insufficient_balance', balance: usdFromMicroUsd(balance) } },
  );
}

export type CommitmentReader = Pick<Reader, 'deployments' | 'volumes' | 'discounts'>;

/**
 * All costs of the team in micro-USD per hour, at the prices of `now`. They include deployments being made or started,
 * and a volume being resized at its new size. While the team's row is locked, they cannot grow.
 */
async function committedRate(
  read: CommitmentReader,
  providers: Providers,
  teamId: string,
  now: number,
  exceptId?: string,
): Promise<number> {
  const discounts = await read.discounts.ofTeam(teamId);
  const best = bestDiscount(discounts, now);
  const deployments = await read.deployments.activeByPrice(teamId);
  // The caller that changes its cost has already locked this row.
  const except = exceptId === undefined ? null : await read.deployments.byId(exceptId);
  const volumes = await read.volumes.ofTeam(teamId);
  const rates = [
    ...deployments.map((prices) => prices.count * deploymentRate(prices, best)),
    ...(except === null ? [] : [-deploymentRate(toPrices(except), best)]),
    ...volumes
      .filter(({ id }) => id !== exceptId)
      .map((record) => volumeRate(record, providers, discounts, now)),
  ];
  return rates.reduce((sum, rate) => sum + rate, 0);
}

type Prices = Omit<ActiveByPrice, 'count'>;

function deploymentRate(prices: Prices, discountPercentage: number): number {
  const isParked = prices.status === 'stopped' && !prices.isResuming;
  const original = isParked ? (prices.originalStoppedRateMicroUsd ?? 0) : prices.originalRateMicroUsd;
  return discounted(original, discountPercentage);
}

function toPrices(record: DeploymentRecord): Prices {
  return { ...record, isResuming: record.action?.kind === 'resume' };
}

/** A volume that broke before it was billed, or that is being deleted, costs nothing. */
function volumeRate(record: VolumeRecord, providers: Providers, discounts: Discounts, now: number): number {
  const { status, startedAt, deletedAt, discountPercentage: locked } = record;
  if (status === 'deleting' || status === 'deleted' || deletedAt !== null) return 0;
  if (status === 'error' && startedAt === null) return 0;
  const best = bestDiscount(discounts, now);
  const toSizeGb = record.action?.kind === 'resize' ? record.action.toSizeGb : undefined;
  // A larger size is priced anew. Otherwise the current rate stays locked until the team's best discount is lower.
  if (toSizeGb !== undefined) return discounted(rateOfSize(record, providers, toSizeGb), best);
  return discounted(record.originalRateMicroUsd, best < locked ? 0 : locked);
}

function rateOfSize(record: VolumeRecord, providers: Providers, sizeGb: number): number {
  const profile = volumeProviderOf(providers, record.providerId)?.profile;
  if (profile === undefined) return Math.round((record.originalRateMicroUsd * sizeGb) / record.sizeGb);
  return hourlyRate(profile, { ...record, sizeGb });
}
