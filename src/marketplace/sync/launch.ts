import { isUsableId } from '../../client/answers.ts';
import { type Identified, orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { CreateInstanceRequest, Instance } from '../../contract/instance.ts';
import type { FailureReason } from '../contract/deployment.ts';
import { transition } from '../deployments/transition.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { isBeingDestroyed, isNamed, isNamedForAnother } from '../model/names.ts';
import {
  announcesUnavailable,
  deployTimeoutMinutes,
  isPlatformSilent,
  mayBeInStock,
  shortageOf,
} from '../providers/capabilities.ts';
import { holderOf, removeOrphan } from './cleanup.ts';
import type { SyncContext } from './context.ts';
import { newSshProof } from './prove-ssh.ts';

const RETRY_MS = 5_000;
/** The pause before the first search after a lost answer, since the provider's list may lag behind. */
const FIRST_SEARCH_MS = 2_000;

/**
 * Sends the create, unless it is overdue or cannot succeed. The state `sent` is committed first, so that a create that
 * may have been sent is not sent again. Returns the pause until the next step.
 */
export async function launch(context: SyncContext, record: DeploymentRecord): Promise<number> {
  if (await failIfOverdue(context, record)) return 0;
  const gate = await checkAvailability(context, record);
  if (gate === 'unknown') return RETRY_MS;
  if (gate !== 'open') {
    await fail(context, record, gate.reason, gate.details);
    return 0;
  }
  const request = await markSent(context, record);
  // Another process may hold the lease, and may already have searched in vain for this create.
  if (request === null || !context.isLeaseHeld()) return 0;
  return send(context, record, request);
}

type Refusal = { reason: FailureReason; details: string };

/**
 * O: Availability contract, 3: "it is the deploy-time gate." `unknown`: the provider or its platform does not answer
 * now.
 */
async function checkAvailability(
  { provider, health, call }: SyncContext,
  record: DeploymentRecord,
): Promise<'open' | 'unknown' | Refusal> {
  const { id, offerId, region } = record;
  try {
    const offers = await provider.client.listAvailability(region, call);
    health.answered(id);
    if (offers.some((offer) => offer.id === offerId && offer.available && offer.regions.includes(region)))
      return 'open';
    const isAnnounced = announcesUnavailable(provider.catalog.offers.get(offerId));
    if (isAnnounced && mayBeInStock(await provider.client.listConfigurations(call), record)) return 'unknown';
    return { reason: 'out_of_stock', details: soldOut(offerId, region) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    health.failed(record, error);
    return error.problem === 'unauthorized' ? toRefusal(error, record) : 'unknown';
  }
}

/** Commits the state `sent`. Returns null if another process has sent the create or the deployment has ended. */
async function markSent(
  { store, clock }: SyncContext,
  { id }: DeploymentRecord,
): Promise<CreateInstanceRequest | null> {
  return store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record?.status !== 'deploying' || record.launch.state !== 'wanted' || record.launch.request === null)
      return null;
    const sent = { ...record.launch, state: 'sent', sentAt: clock.now() } as const;
    await tx.deployments.update({ ...record, launch: sent });
    return record.launch.request;
  });
}

async function send(
  context: SyncContext,
  record: DeploymentRecord,
  request: CreateInstanceRequest,
): Promise<number> {
  const { provider, health, call, options } = context;
  const made = await orProviderError(provider.client.createInstance(request, record.id, call));
  if (!(made instanceof ProviderError)) {
    health.answered(record.id);
    await adopt(context, record.id, made);
    return options.polling.intervalMs[0];
  }
  health.failed(record, made);
  if (made.mayHaveHappened) return FIRST_SEARCH_MS;
  if (!isAnswer(made) || isPlatformSilent(made)) return revertToWanted(context, record);
  const sent = { ...record, launch: { ...record.launch, state: 'sent' as const } };
  const { reason, details } = toRefusal(made, record);
  await fail(context, sent, reason, details);
  return 0;
}

/** Whether the answer is final: nothing was made, and a retry cannot help. */
function isAnswer({ problem }: ProviderError): boolean {
  return ['refused', 'unauthorized', 'not_found', 'conflict'].includes(problem);
}

/** Returns to `wanted`: nothing was made and the answer is not final, so the create is sent again. */
async function revertToWanted({ store }: SyncContext, { id }: DeploymentRecord): Promise<number> {
  await store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record?.status !== 'deploying' || record.launch.state !== 'sent') return;
    await tx.deployments.update({ ...record, launch: { ...record.launch, state: 'wanted', sentAt: null } });
  });
  return RETRY_MS;
}

function toRefusal(error: ProviderError, record: DeploymentRecord): Refusal {
  const reason = reasonOf(error);
  return { reason, details: detailsOf(reason, error, record) };
}

function reasonOf(error: ProviderError): FailureReason {
  const { problem, code } = error;
  if (problem === 'unauthorized') return 'provider_unauthorized';
  if (problem === 'conflict') return shortageOf(error) ?? 'conflict';
  return code?.includes('unsupported') === true ? 'unsupported' : 'invalid_request';
}

/** M: `failureDetails`: "One readable line". Quotes the provider's text if it gave one. */
function detailsOf(
  reason: FailureReason,
  { said }: ProviderError,
  { providerId, offerId, region }: DeploymentRecord,
): string {
  if (reason === 'out_of_stock') return soldOut(offerId, region);
  if (reason === 'quota_exceeded') return `The quota of this marketplace at ${providerId} is used up.`;
  if (reason === 'provider_unauthorized') return `${providerId} rejects the marketplace's credentials.`;
  return said === null
    ? `${providerId} refused the instance and gave no reason.`
    : `${providerId} refused the instance: ${said}`;
}

function soldOut(offerId: string, region: string): string {
  return `${offerId} is sold out in ${region}.`;
}

/** Why a create failed whose answer names no instance that the deployment can have: what operators do, what users read. */
const unassigned = {
  taken: {
    alarm:
      'the provider answered a create with the instance of another deployment: the create failed; ask the provider which instance it made',
    details: 'answered with the machine of another deployment.',
  },
  unusable: {
    alarm:
      'the provider made an instance whose id cannot be used: the create failed, and the instance may cost money; find it at the provider by its name, and delete it there',
    details: 'answered with a machine whose id cannot be used.',
  },
};

/**
 * Assigns the instance, unless its id cannot be used, another deployment has it or its name is that of another: changes
 * would affect both. If the deployment has ended, the instance is cleaned up. If the deployment has another instance, the
 * sweep deletes this one.
 */
export async function adopt(context: SyncContext, id: string, instance: Identified<Instance>): Promise<void> {
  const { store, provider, log } = context;
  const { outcome, names, record } = await store.transact(async (tx) => {
    // Serialises creates that are answered with the same id, so that the second sees the first.
    await tx.losses.lock(provider.id);
    const record = await tx.deployments.byId(id);
    const names = record === null ? { deployment: id } : logNames(record);
    if (record === null || record.providerInstanceId !== null) return { outcome: 'ignored', names };
    if (!isUsableId(instance.id)) return { outcome: 'unusable' as const, names, record };
    const isTaken =
      (await holderOf(tx, provider.id, instance.id, id)) !== null ||
      isNamedForAnother(instance, context.installationId, record.providerName);
    if (isTaken) return { outcome: 'taken' as const, names, record };
    const isWaitedFor = record.status === 'deploying';
    await tx.deployments.update({
      ...record,
      providerInstanceId: instance.id,
      sshProof: newSshProof(record.launch.request?.ssh_keys ?? []),
      launch: { ...record.launch, state: isWaitedFor ? 'made' : 'over', request: null },
      cleanup: isWaitedFor ? record.cleanup : 'wanted',
    });
    return { outcome: isWaitedFor ? 'adopted' : 'too late', names };
  });
  const fields = { ...names, provider: provider.id, instance: instance.id.slice(0, 255), outcome };
  if (record === undefined) return log.info(fields, 'the provider has made an instance');
  const { alarm, details } = unassigned[outcome];
  log.error({ ...fields, name: instance.name ?? record.providerName }, alarm);
  await fail(context, record, 'provider_error', `${provider.id} ${details}`);
}

const MINUTE_MS = 60_000;

/** Fails the deployment if it has exceeded the provider's deploy timeout. Returns whether it has. */
export async function failIfOverdue(context: SyncContext, record: DeploymentRecord): Promise<boolean> {
  const { clock, provider, awaitingProof, options } = context;
  const { id, createdAt, sshProof, providerId, launch } = record;
  if (record.status !== 'deploying') return false;
  const onlineAt = sshProof?.onlineAt ?? awaitingProof.get(id)?.seenAt;
  const minutes = deployTimeoutMinutes(provider, record);
  const madeBy = createdAt + minutes * MINUTE_MS;
  // A machine that was ONLINE gets the full window for its SSH proof.
  const provedBy = onlineAt === undefined ? madeBy : onlineAt + options.polling.sshWindowMs;
  if (clock.now() < Math.max(madeBy, provedBy)) return false;
  const details =
    launch.state === 'wanted'
      ? `${providerId} could not take the order within ${minutes} minutes; no machine was created.`
      : `The machine was not reachable within ${minutes} minutes and is being removed.`;
  await fail(context, record, 'provisioning_timeout', details);
  return true;
}

/** Fails the deployment, unless it has changed since the decision. An instance that may exist is cleaned up. */
async function fail(
  context: SyncContext,
  decidedOn: DeploymentRecord,
  failureReason: FailureReason,
  failureDetails: string,
): Promise<void> {
  const { store, clock, log } = context;
  const hasFailed = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(decidedOn.id);
    if (record === null || record.status !== 'deploying' || record.launch.state !== decidedOn.launch.state)
      return false;
    const fields = { failureReason, failureDetails };
    await transition(context, tx, record, { to: 'failed', at: clock.now(), fields });
    return true;
  });
  if (hasFailed) log.warn({ ...logNames(decidedOn), failureReason, failureDetails }, 'a deployment failed');
}

const FIRST_SEARCHES_MS = 2_000;
const LAST_SEARCHES_MS = 10_000;

/**
 * Searches the provider's list for the instance of a create whose answer was lost. Adopts the oldest and deletes the
 * others. If none appears within `findCreateMs`, the deployment fails, and the sweep deletes one that appears later.
 * Returns the pause until the next search.
 */
export async function findLaunched(context: SyncContext, record: DeploymentRecord): Promise<number> {
  const { clock, options, provider, health, call } = context;
  const listed = await orProviderError(provider.client.listInstances(call));
  if (listed instanceof ProviderError) {
    health.failed(record, listed);
    await failIfOverdue(context, record);
    return LAST_SEARCHES_MS;
  }
  health.answered(record.id);
  const found = listed.filter((instance) => isNamed(instance, record.providerName)).sort(byAge);
  const [adopted = found[0], ...others] = found.filter((instance) => !isBeingDestroyed(instance));
  if (adopted !== undefined) {
    await adopt(context, record.id, adopted);
    // A list may contain an instance twice.
    for (const other of others) if (other.id !== adopted.id) await removeOrphan(context, record, other);
    return 0;
  }
  const waitedMs = clock.now() - (record.launch.sentAt ?? record.createdAt);
  if (waitedMs >= options.polling.findCreateMs) {
    await fail(
      context,
      record,
      'provider_error',
      'The provider did not answer, and no machine was found there.',
    );
    return 0;
  }
  // The pause doubles: it is the time waited so far, in multiples of the first pause.
  const firstPauses = Math.max(1, Math.round(waitedMs / FIRST_SEARCHES_MS));
  return Math.min(LAST_SEARCHES_MS, firstPauses * FIRST_SEARCHES_MS);
}

function byAge(a: Identified<Instance>, b: Identified<Instance>): number {
  return createdAt(a) - createdAt(b) || a.id.localeCompare(b.id);
}

/** An instance whose time cannot be read counts as new. */
function createdAt({ created_at: at }: Identified<Instance>): number {
  return at === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(at);
}
