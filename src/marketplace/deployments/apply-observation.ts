import { microUsdFromUsd } from '../../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Reader, Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { type Facts, type Judgement, judge, type Observation } from './observe.ts';
import { reprice, type TransitionDeps, type TransitionFields, transition } from './transition.ts';

export type ApplyDeps = TransitionDeps & Pick<Deps, 'store'>;

/** What was made of an observation. */
export type Applied =
  /** The record is right, and nothing needs to be written but until when that was seen. */
  | { outcome: 'confirmed'; why?: string }
  /** The record is another one now. */
  | { outcome: 'written'; record: DeploymentRecord; why: string }
  | { outcome: 'held'; why: string }
  /** The record had been changed since the look began: what was seen says nothing of it. */
  | { outcome: 'dropped' };

/**
 * Writes what an observation means. `seen` is the record as it was read before the provider was asked, at `begunAt`: if
 * it was changed since, the observation is of an older one and is dropped. Where only the time of the last confirmation
 * changed, nothing is written here: those are many, and are written together.
 */
export async function applyObservation(
  deps: ApplyDeps,
  seen: DeploymentRecord,
  observation: Observation,
  begunAt: number,
): Promise<Applied> {
  const { polling } = deps.options;
  const seenAt = deps.clock.now();
  const firstRate = await firstRateOf(deps.store.read, seen, observation);
  const judgement = judge(seen, observation, begunAt, polling, firstRate, seenAt);
  if (judgement.kind === 'hold') return { outcome: 'held', why: judgement.why };
  if (isMereConfirmation(judgement, seen)) return { outcome: 'confirmed', ...reasonOf(judgement) };
  const written = await deps.store.transact(async (tx) => {
    const record = await tx.deployments.byId(seen.id);
    if (record === null || record.revision !== seen.revision) return null;
    return write(deps, tx, record, judge(record, observation, begunAt, polling, firstRate, seenAt), begunAt);
  });
  if (written === null) return { outcome: 'dropped' };
  return { outcome: 'written', record: written, why: judgement.why ?? 'what it says of itself changed' };
}

/** What a deployment whose price moves cost before, in micro-USD per hour: each move is measured by the first price. */
async function firstRateOf(
  { ledger }: Pick<Reader, 'ledger'>,
  { id, instanceType, originalRateMicroUsd }: DeploymentRecord,
  observation: Observation,
): Promise<number> {
  const told = 'instance' in observation ? observation.instance.price_per_hour : undefined;
  if (instanceType !== 'SPOT' || told === undefined || microUsdFromUsd(told) === originalRateMicroUsd)
    return originalRateMicroUsd;
  const [first] = await ledger.segmentsOf('deployment', id);
  return first?.originalRateMicroUsdPerHour ?? originalRateMicroUsd;
}

function isMereConfirmation(judgement: Judgement, { suspicion }: DeploymentRecord): boolean {
  return judgement.kind === 'confirm' && Object.keys(judgement.facts).length === 0 && suspicion === null;
}

function reasonOf({ why }: Judgement): { why?: string } {
  return why === undefined ? {} : { why };
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
      const { to, at, facts, failure } = judgement;
      const fields: TransitionFields = {
        ...facts.endpoint,
        ...(facts.originalRateMicroUsd !== undefined && { originalRateMicroUsd: facts.originalRateMicroUsd }),
        ...(failure !== undefined && { failureReason: failure.reason, failureDetails: failure.details }),
        // An end counts from its own time on; what lives was seen until now.
        ...((to === 'running' || to === 'stopped') && { observedAt }),
      };
      return transition(deps, tx, record, { to, at, fields });
    }
  }
}

async function confirm(
  deps: ApplyDeps,
  tx: Transaction,
  record: DeploymentRecord,
  { endpoint, originalRateMicroUsd }: Facts,
  observedAt: number,
): Promise<DeploymentRecord> {
  const confirmed: DeploymentRecord = {
    ...record,
    ...endpoint,
    suspicion: null,
    observedAt: Math.max(observedAt, record.observedAt ?? observedAt),
  };
  if (originalRateMicroUsd === undefined) return update(tx, confirmed);
  return reprice(deps, tx, confirmed, originalRateMicroUsd, observedAt);
}

async function update(tx: Transaction, record: DeploymentRecord): Promise<DeploymentRecord> {
  await tx.deployments.update(record);
  return (await tx.deployments.byId(record.id)) ?? record;
}
