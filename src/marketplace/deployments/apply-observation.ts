import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Transaction } from '../model/store.ts';
import { admitLoss, HELD, logLossAlarm } from '../providers/loss-cap.ts';
import { markedUp, noMarkups } from '../providers/markup.ts';
import { type Endpoint, endpointOf, toSshAddress } from './endpoint.ts';
import { type Facts, type Judgement, judge, type Observation } from './observe.ts';
import { reprice, type TransitionDeps, type TransitionFields, transition } from './transition.ts';

export type ApplyDeps = TransitionDeps & Pick<Deps, 'store'>;

export type Applied =
  /** The record is unchanged. The caller only has to write the time of the confirmation. */
  | { outcome: 'confirmed'; why: string | undefined }
  | { outcome: 'written'; record: DeploymentRecord; why: string }
  | { outcome: 'held'; why: string }
  /** The deployment could run, but this endpoint has no SSH proof yet. */
  | { outcome: 'unproved'; endpoint: Endpoint }
  /** The record has changed since the observation began, so the observation is outdated. */
  | { outcome: 'dropped' };

/**
 * Applies an observation to the row. `snapshot` is the record as read at `begunAt`, before the provider was asked. If
 * the row has changed since, the observation is dropped. The caller writes confirmations without changes in batches.
 */
export async function applyObservation(
  deps: ApplyDeps,
  snapshot: DeploymentRecord,
  observation: Observation,
  begunAt: number,
): Promise<Applied> {
  const { polling } = deps.options;
  const seenAt = deps.clock.now();
  const under = { now: begunAt, seenAt, polling };
  const judgement = judge(snapshot, observation, under);
  const endpoint = endpointToProve(deps.providers, snapshot, judgement, observation);
  if (endpoint !== null) return { outcome: 'unproved', endpoint };
  if (judgement.kind === 'hold') return { outcome: 'held', why: judgement.why };
  const isMereConfirmation = judgement.kind === 'confirm' && Object.keys(judgement.facts).length === 0;
  if (isMereConfirmation && snapshot.suspicion === null) return { outcome: 'confirmed', why: judgement.why };
  const isLoss = judgement.kind === 'change' && judgement.isLoss === true;
  const { written, held } = await deps.store.transact(async (tx) => {
    if (isLoss) await tx.losses.lock(snapshot.providerId);
    const record = await tx.deployments.byId(snapshot.id);
    if (record === null || record.revision !== snapshot.revision) return { written: null };
    if (isLoss) {
      const loss = { subjectId: record.id, kind: 'deployment', providerId: record.providerId } as const;
      const admission = await admitLoss(deps, tx, loss);
      if (!admission.isAdmitted) return { written: null, held: admission };
    } else if (record.suspicion?.status === 'GONE' && 'instance' in observation)
      await tx.losses.release(record.id);
    const judged = judge(record, observation, under);
    return { written: await write(deps, tx, record, judged, begunAt) };
  });
  if (held !== undefined) {
    if (held.alarm !== null) logLossAlarm(deps.log, held.alarm);
    return { outcome: 'held', why: HELD };
  }
  if (written === null) return { outcome: 'dropped' };
  return { outcome: 'written', record: written, why: judgement.why ?? 'its reported details changed' };
}

/**
 * The endpoint that must pass the SSH proof first (M: running, "reachable by SSH"). Null if the endpoint is proved, if
 * no proof is needed, or if the deployment would not run.
 */
function endpointToProve(
  providers: Deps['providers'],
  record: DeploymentRecord,
  judgement: Judgement,
  observation: Observation,
): Endpoint | null {
  const { status, providerId, sshProof } = record;
  if (status !== 'deploying' || judgement.kind !== 'change' || judgement.to !== 'running') return null;
  if (!('instance' in observation) || (providers.get(providerId)?.sshProbe ?? null) === null) return null;
  const endpoint = endpointOf(observation.instance, record);
  if (endpoint === null || sshProof?.provedEndpoint === toSshAddress(endpoint)) return null;
  return endpoint;
}

async function write(
  deps: ApplyDeps,
  tx: Transaction,
  record: DeploymentRecord,
  judgement: Judgement,
  observedAt: number,
): Promise<DeploymentRecord | null> {
  switch (judgement.kind) {
    case 'hold':
      return null;
    case 'suspect':
      return update(tx, { ...record, suspicion: judgement.suspicion });
    case 'confirm':
      return confirm(deps, tx, record, judgement.facts, observedAt);
    case 'change': {
      const { to, at, facts, failure, isLoss = false } = judgement;
      const fields: TransitionFields = {
        ...facts.endpoint,
        ...(facts.providerRateMicroUsd !== undefined && ratesOf(deps, record, facts.providerRateMicroUsd)),
        ...(failure !== undefined && { failureReason: failure.reason, failureDetails: failure.details }),
        // An end counts from its own time; a live deployment is confirmed up to this observation.
        ...((to === 'running' || to === 'stopped') && { observedAt }),
      };
      return transition(deps, tx, record, { to, at, fields, isLoss });
    }
  }
}

async function confirm(
  deps: ApplyDeps,
  tx: Transaction,
  record: DeploymentRecord,
  { endpoint, providerRateMicroUsd }: Facts,
  observedAt: number,
): Promise<DeploymentRecord> {
  const confirmed: DeploymentRecord = {
    ...record,
    ...endpoint,
    suspicion: null,
    observedAt: Math.max(observedAt, record.observedAt ?? observedAt),
  };
  if (providerRateMicroUsd === undefined) return update(tx, confirmed);
  return reprice(deps, tx, confirmed, ratesOf(deps, record, providerRateMicroUsd), observedAt);
}

/** The provider's current price, and the price with the current markup. */
function ratesOf(
  { providers }: Pick<Deps, 'providers'>,
  { providerId, offerId }: DeploymentRecord,
  providerRateMicroUsd: number,
) {
  const markups = providers.get(providerId)?.markups ?? noMarkups;
  return { providerRateMicroUsd, originalRateMicroUsd: markedUp(providerRateMicroUsd, markups, offerId) };
}

async function update(tx: Transaction, record: DeploymentRecord): Promise<DeploymentRecord> {
  await tx.deployments.update(record);
  return (await tx.deployments.byId(record.id)) ?? record;
}
