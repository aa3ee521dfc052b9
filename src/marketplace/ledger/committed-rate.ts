import { bestDiscount, type Discounts } from '../discounts/best-discount.ts';
import { discounted } from '../discounts/discounted.ts';
import type { Reader } from '../ports/store.ts';
import type { Providers } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { hourlyRate } from '../volumes/hourly-rate.ts';
import { sellerOf } from '../volumes/seller.ts';

export type CommitmentReader = Pick<Reader, 'deployments' | 'volumes' | 'discounts'>;

/**
 * What everything that a team has costs per hour, in micro-USD, at the prices of `now`: what runs, what is being deployed
 * or started and is not billed yet, what is stopped, and its volumes, one that is being made larger at its new size.
 * `exceptId` is left out. In a transaction that holds the team's row nothing is added to it meanwhile.
 */
export async function committedRate(
  read: CommitmentReader,
  providers: Providers,
  teamId: string,
  now: number,
  exceptId?: string,
): Promise<number> {
  const discounts = await read.discounts.ofTeam(teamId);
  const deployments = await read.deployments.list({
    teamIds: [teamId],
    statuses: ['deploying', 'running', 'stopped'],
  });
  const volumes = await read.volumes.ofTeam(teamId);
  const rates = [
    ...without(deployments, exceptId).map((record) => deploymentRate(record, bestDiscount(discounts, now))),
    ...without(volumes, exceptId).map((record) => volumeRate(record, providers, discounts, now)),
  ];
  return rates.reduce((sum, rate) => sum + rate, 0);
}

function without<T extends { id: string }>(records: readonly T[], exceptId: string | undefined): T[] {
  return records.filter(({ id }) => id !== exceptId);
}

function deploymentRate(record: DeploymentRecord, discountPercentage: number): number {
  const isParked = record.status === 'stopped' && record.action?.kind !== 'resume';
  const original = isParked ? (record.originalStoppedRateMicroUsd ?? 0) : record.originalRateMicroUsd;
  return discounted(original, discountPercentage);
}

/** What broke before it was billed, and what is being deleted, costs nothing. */
function volumeRate(record: VolumeRecord, providers: Providers, discounts: Discounts, now: number): number {
  const { status, startedAt, deletedAt, discountPercentage: locked } = record;
  if (status === 'deleting' || status === 'deleted' || deletedAt !== null) return 0;
  if (status === 'error' && startedAt === null) return 0;
  const best = bestDiscount(discounts, now);
  const toSizeGb = record.action?.kind === 'resize' ? record.action.toSizeGb : undefined;
  // A larger size is priced anew; what it costs now stays locked until the team has no discount as good.
  if (toSizeGb !== undefined) return discounted(rateOfSize(record, providers, toSizeGb), best);
  return discounted(record.originalRateMicroUsd, best < locked ? 0 : locked);
}

function rateOfSize(record: VolumeRecord, providers: Providers, sizeGb: number): number {
  const profile = sellerOf(providers, record.providerId)?.profile;
  if (profile === undefined) return Math.round((record.originalRateMicroUsd * sizeGb) / record.sizeGb);
  return hourlyRate(profile, { ...record, sizeGb });
}
