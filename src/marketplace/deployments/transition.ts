import { berthAnswerSchema } from '../../client/answers.ts';
import { assertTransition } from '../../contract/transitions.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import { type DeploymentStatus, deploymentTransitions } from '../contract/deployment.ts';
import type { Deps } from '../deps.ts';
import { discounted, priceFor } from '../discounts/price.ts';
import { endBilling, startBilling } from '../ledger/segments.ts';
import { notifyDeployment } from '../mail/outbox.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import type { Transaction } from '../model/store.ts';
import { profileStoppedPrice, stoppedPrice } from '../providers/capabilities.ts';
import { type Markups, markedUpStopped, noMarkups } from '../providers/markup.ts';
import type { Providers } from '../providers/provider.ts';
import { releaseVolumes } from '../volumes/intents.ts';
import { toFailureDetails } from './observe.ts';

export type TransitionDeps = Pick<Deps, 'random' | 'log' | 'providers' | 'clock' | 'options'>;

/** The fields that a move may change besides the status. */
export type TransitionFields = Partial<Omit<DeploymentRecord, 'id' | 'status' | 'revision'>>;

export interface Move {
  to: DeploymentStatus;
  /** The time from which the new status counts, but not before the last confirmation. */
  at: number;
  /** The provider answers 404. The instance is then not deleted there: a 404 does not authorise a deletion. */
  isLoss?: boolean;
  fields?: TransitionFields;
}

/**
 * The only function that writes a deployment's status. It also updates times, prices, billing, clean-up, volumes,
 * temporary key and mail. `record` was read by id in this transaction.
 * @throws {IllegalTransition}
 */
export async function transition(
  deps: TransitionDeps,
  tx: Transaction,
  record: DeploymentRecord,
  { to, at: from, fields = {}, isLoss = false }: Move,
): Promise<DeploymentRecord> {
  assertTransition(deploymentTransitions, record.status, to, `deployment ${record.id}`);
  const at = Math.max(from, record.observedAt ?? from);
  const observedAt = Math.max(at, fields.observedAt ?? at);
  const moved: DeploymentRecord = {
    ...record,
    ...fields,
    observedAt,
    status: to,
    suspicion: null,
    action: null,
    // The keys are needed only for the proof.
    sshProof: record.sshProof === null ? null : { ...record.sshProof, keys: [] },
  };
  if (to === 'running') return toRunning(deps, tx, resumed(moved, at), at);
  if (to === 'stopped') return toStopped(deps, tx, { ...moved, pausedAt: at }, fields, at);
  return toEnd(deps, tx, resumed(moved, at), at, isLoss);
}

/** Sets a running spot instance's price from `at` on. `record` was read by id in this transaction. */
export async function reprice(
  deps: TransitionDeps,
  tx: Transaction,
  record: DeploymentRecord,
  rates: Pick<DeploymentRecord, 'providerRateMicroUsd' | 'originalRateMicroUsd'>,
  at: number,
): Promise<DeploymentRecord> {
  return toRunning(deps, tx, { ...record, ...rates }, Math.max(at, record.observedAt ?? at));
}

/** Ends the current stop, if there is one. */
function resumed(record: DeploymentRecord, at: number): DeploymentRecord {
  if (record.pausedAt === null) return record;
  return { ...record, pausedMs: record.pausedMs + Math.max(0, at - record.pausedAt), pausedAt: null };
}

async function toRunning(
  deps: TransitionDeps,
  tx: Transaction,
  moved: DeploymentRecord,
  at: number,
): Promise<DeploymentRecord> {
  const price = await priceFor(tx, moved.teamId, moved.originalRateMicroUsd, at);
  const isFirst = moved.startedAt === null;
  const record: DeploymentRecord = {
    ...moved,
    startedAt: moved.startedAt ?? at,
    rateMicroUsd: price.rateMicroUsd,
    discountPercentage: price.discountPercentage,
    // The request is no longer needed, and it contains the user's data.
    launch: { ...moved.launch, request: null },
  };
  await tx.deployments.update(record);
  const { providerRateMicroUsd } = record;
  await startBilling(deps, tx, { ...subjectOf(record), state: 'running', price, at, providerRateMicroUsd });
  if (isFirst) await notifyDeployment(deps, tx, record, 'ready');
  return reread(tx, record);
}

async function toStopped(
  deps: TransitionDeps,
  tx: Transaction,
  moved: DeploymentRecord,
  fields: TransitionFields,
  at: number,
): Promise<DeploymentRecord> {
  const original = fields.originalStoppedRateMicroUsd ?? originalStoppedRate(deps.providers, moved);
  if (original === null)
    deps.log.error(
      { ...logNames(moved), offer: moved.offerId, instanceType: moved.instanceType },
      'the price of a stopped deployment is not known, so nothing is billed while it is stopped: set stopped_price_per_hour in the profile of its provider (0 if a stopped machine is free)',
    );
  const price = await priceFor(tx, moved.teamId, original ?? 0, at);
  const record: DeploymentRecord = {
    ...moved,
    originalStoppedRateMicroUsd: price.originalRateMicroUsd,
    stoppedRateMicroUsd: price.rateMicroUsd,
    // All shown rates use the same discount. The billing job applies a later one.
    discountPercentage: price.discountPercentage,
    rateMicroUsd: discounted(moved.originalRateMicroUsd, price.discountPercentage),
  };
  await tx.deployments.update(record);
  const providerRateMicroUsd = providerStoppedRate(deps.providers, record);
  await startBilling(deps, tx, { ...subjectOf(record), state: 'stopped', price, at, providerRateMicroUsd });
  return reread(tx, record);
}

async function toEnd(
  deps: TransitionDeps,
  tx: Transaction,
  moved: DeploymentRecord,
  at: number,
  isLoss: boolean,
): Promise<DeploymentRecord> {
  const mayExist = moved.launch.state === 'sent' || moved.launch.state === 'made';
  const record: DeploymentRecord = {
    ...moved,
    stoppedAt: at,
    cleanup: mayExist && !isLoss ? 'wanted' : moved.cleanup,
    launch: { ...moved.launch, state: 'over', request: null },
    failureDetails: moved.failureDetails === null ? null : toFailureDetails(moved.failureDetails),
  };
  await tx.deployments.update(record);
  // Every transaction locks volumes before the team.
  await releaseVolumes(tx, record.id, at);
  await tx.losses.release(record.id);
  await endBilling(deps, tx, 'deployment', record.id, at);
  if (record.tempSshKeyId !== null) await tx.sshKeys.remove(record.tempSshKeyId);
  if (record.status === 'failed') await notifyDeployment(deps, tx, record, 'failed');
  await tx.signals.wake(record.providerId, record.id);
  return reread(tx, record);
}

function subjectOf({ id, teamId }: DeploymentRecord) {
  return { subjectKind: 'deployment', subjectId: id, teamId } as const;
}

async function reread(tx: Transaction, record: DeploymentRecord): Promise<DeploymentRecord> {
  return (await tx.deployments.byId(record.id)) ?? record;
}

/**
 * The stopped rate with the markup and before discounts, in micro-USD per hour: the announced one, else the profile's,
 * else the last known. Null if none was ever known.
 */
export function originalStoppedRate(providers: Providers, record: DeploymentRecord): number | null {
  const { offerId, region, extras, originalStoppedRateMicroUsd: last } = record;
  const provider = providers.get(record.providerId);
  const offer = provider?.catalog.offers.get(offerId);
  const known = provider && offer ? stoppedPrice(provider.profile, offer, region) : null;
  return (
    known ??
    last ??
    deployedRate(extras, offerId, provider?.markups ?? noMarkups) ??
    (provider === undefined ? null : profileStoppedPrice(provider.profile, record, region))
  );
}

/** The provider's price while stopped, in micro-USD per hour. Null if the current catalog has none. */
function providerStoppedRate(
  providers: Providers,
  { providerId, offerId }: Pick<DeploymentRecord, 'providerId' | 'offerId'>,
): number | null {
  return providers.get(providerId)?.catalog.offers.get(offerId)?.providerStoppedPriceMicroUsdPerHour ?? null;
}

function deployedRate(extras: Record<string, unknown>, offerId: string, markups: Markups): number | null {
  const reported = berthAnswerSchema.safeParse(extras['berth']).data?.stopped_price_per_hour;
  return reported === undefined ? null : markedUpStopped(microUsdFromUsd(reported), markups, offerId);
}
