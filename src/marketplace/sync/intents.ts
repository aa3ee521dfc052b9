import { orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Instance } from '../../contract/instance.ts';
import { ApiError } from '../contract/errors.ts';
import { applyObservation } from '../deployments/apply-observation.ts';
import { type Asked, toCall } from '../deployments/intents.ts';
import { mayBeOver } from '../deployments/lifecycle.ts';
import type { Observation } from '../deployments/observe.ts';
import { type DeploymentIntent, type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { isAwaited, isExpired, isLastAttempt, isUnsent, toRefusal, withAttempt } from '../model/intent.ts';
import { shortageOf } from '../providers/capabilities.ts';
import { notReached, refusedError } from '../providers/intended-call.ts';
import type { SyncContext } from './context.ts';

/** A deployment whose intent is being sent, as it was committed. */
type Sent = Asked & { providerInstanceId: string };

/**
 * Sends the intent once, since a call without an answer "usually means it was accepted" (M: Deployments, rule 3). The
 * attempt is committed before the call. Only a proof that the call had no effect ends the intent here. Returns whether
 * the provider has answered.
 */
export async function sendIntent(context: SyncContext, id: string): Promise<boolean> {
  const sent = await beginAttempt(context, id);
  if (sent === null) return false;
  context.answers.rowChanged(id);
  // Another process may hold the lease, and may already have seen the attempt.
  if (!context.isLeaseHeld()) return false;
  const begunAt = context.clock.now();
  const answer = await orProviderError(call(context, sent));
  if (answer instanceof ProviderError) {
    await settleError(context, sent, answer);
    return false;
  }
  context.health.answered(sent.id);
  await accept(context, sent, answer, begunAt);
  return true;
}

/** Commits the attempt. Null: there is nothing to send. */
async function beginAttempt({ store, clock }: SyncContext, id: string): Promise<Sent | null> {
  return store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    const { action = null, providerInstanceId = null } = record ?? {};
    if (record === null || action === null || !isUnsent(action)) return null;
    const now = clock.now();
    if (providerInstanceId === null || isExpired(action, now)) {
      const refusal = toRefusal(action, notReached(toCall({ ...record, action })));
      await tx.deployments.update({ ...record, action: null, refusal });
      return null;
    }
    const sent = { ...record, action: withAttempt(action, now), providerInstanceId };
    await tx.deployments.update(sent);
    return { ...sent, revision: record.revision + 1 };
  });
}

function call({ provider: { client }, call: options }: SyncContext, sent: Sent): Promise<Instance> {
  const { providerInstanceId: id, region } = sent;
  if (sent.action.kind === 'pause') return client.stopInstance(id, region, options);
  if (sent.action.kind === 'resume') return client.startInstance(id, region, options);
  return client.restartInstance(id, region, options);
}

/** Applies the answer, which may already show the final state. */
async function accept(context: SyncContext, sent: Sent, instance: Instance, begunAt: number): Promise<void> {
  const applied =
    sent.action.kind === 'restart'
      ? null
      : await applyObservation(context, sent, { instance }, begunAt).then(({ outcome }) => outcome);
  if (applied !== 'written') await writeAnswer(context, sent, 'accepted');
}

async function settleError(context: SyncContext, sent: Sent, error: ProviderError): Promise<void> {
  context.health.failed(sent, error);
  const verdict = await verdictOn(context, sent, error);
  if (verdict !== 'undone') return writeAnswer(context, sent, verdict === 'open' ? error.status : verdict);
  const refusal = toRefusal(sent.action, refusalOf(sent, error));
  await onLastAttempt(context, sent, (record) => ({ ...record, action: null, refusal }));
  const { problem, code, said } = error;
  context.log.warn(
    { ...logNames(sent), action: sent.action.kind, problem, code, said },
    'the provider refused a change of a deployment',
  );
}

/**
 * `undone` means that the call had no effect. A read can prove only that it had one, since a call without an answer may
 * still be queued.
 */
async function verdictOn(
  context: SyncContext,
  sent: Sent,
  { problem, mayHaveHappened }: ProviderError,
): Promise<'undone' | 'accepted' | 'open'> {
  const { provider, call } = context;
  const { action, providerInstanceId, region } = sent;
  const unasked = mayHaveHappened ? 'open' : 'undone';
  const isAsked =
    action.kind === 'restart'
      ? mayHaveHappened
      : action.kind === 'pause' && problem === (mayHaveHappened ? 'failed' : 'conflict');
  if (!isAsked) return unasked;
  const answer = await orProviderError<Instance | RestartStatus>(
    action.kind === 'restart'
      ? provider.client.restartStatus(providerInstanceId, region, call)
      : provider.client.getInstance(providerInstanceId, region, call),
  );
  if (answer instanceof ProviderError) return unasked;
  const isUnderWay =
    'restarting' in answer ? answer.restarting : answer.status === 'STOPPING' || answer.status === 'STOPPED';
  return isUnderWay ? 'accepted' : unasked;
}

/** Writes the answer, unless an answer is already stored. */
function writeAnswer(context: SyncContext, sent: Sent, answer: DeploymentIntent['answer']): Promise<void> {
  return onLastAttempt(context, sent, (record, action) =>
    action.answer === null && answer !== null ? { ...record, action: { ...action, answer } } : null,
  );
}

/** Writes what `change` returns, if the attempt is still the last one. */
async function onLastAttempt(
  { store }: SyncContext,
  sent: Asked,
  change: (record: DeploymentRecord, action: DeploymentIntent) => DeploymentRecord | null,
): Promise<void> {
  await store.transact(async (tx) => {
    const record = await tx.deployments.byId(sent.id);
    if (record === null || record.action === null || !isLastAttempt(record.action, sent.action)) return;
    const changed = change(record, record.action);
    if (changed !== null) await tx.deployments.update(changed);
  });
}

function refusalOf(sent: Sent, error: ProviderError): ApiError {
  const isFull = error.problem === 'conflict' && shortageOf(error) !== 'quota_exceeded';
  if (sent.action.kind !== 'resume' || !isFull) return refusedError(toCall(sent), error);
  return new ApiError(
    'OUT_OF_STOCK',
    `${sent.providerId} has no machine of this type free now; the instance and its data are intact. Try again later.`,
  );
}

/** O: Integration is poll-based. A machine that is ONLINE after this time was not stopped. */
const PAUSE_SHOWS_MS = 60_000;

/** Ends a sent intent of a deployment that is done or has timed out. */
export async function settleAction(
  context: SyncContext,
  record: DeploymentRecord,
  observation: Observation,
): Promise<void> {
  const { clock, options, log } = context;
  const { action } = record;
  if (action === null || isUnsent(action)) return;
  const ageMs = clock.now() - (action.sentAt ?? action.since);
  const timeoutMs = isPauseUnseen(observation, action.kind) ? PAUSE_SHOWS_MS : options.polling.actionMs;
  // An intent that a request still waits for is kept, so that the request can read the outcome.
  const isAwaitedStill = isAwaited(action, clock.now());
  const isTooOld = ageMs >= timeoutMs && !isAwaitedStill;
  const isRestarting = isTooOld ? false : await askForRestart(context, record);
  if (!isTooOld && isRestarting === null) return;
  if (isTooOld)
    log.warn(
      { ...logNames(record), action: action.kind, answer: action.answer, ageMs },
      action.kind === 'resume' && action.answer === 'accepted'
        ? 'the provider accepted a start, and the machine does not run: it stays stopped and can be started again; ask the provider whether it has room'
        : 'the provider did not show a change in time: it is given up',
    );
  const checkedAt = clock.now();
  await context.store.transact(async (tx) => {
    const latest = await tx.deployments.byId(record.id);
    if (latest === null || latest.action?.id !== action.id) return;
    const { answer } = latest.action;
    const isUnclear = isAwaitedStill && answer !== 'accepted';
    const seen = { ...latest.action, checkedAt, answer: isRestarting ? ('accepted' as const) : answer };
    await tx.deployments.update({ ...latest, action: isRestarting || isUnclear ? seen : null });
  });
}

function isPauseUnseen(observation: Observation, kind: DeploymentIntent['kind']): boolean {
  return kind === 'pause' && 'instance' in observation && observation.instance.status === 'ONLINE';
}

/** Whether the restart is in progress. Null if the provider does not say, or if none was asked for. */
async function askForRestart(
  { clock, provider, health, call }: SyncContext,
  record: DeploymentRecord,
): Promise<boolean | null> {
  const { action, region, offerId, providerInstanceId } = record;
  if (action?.kind !== 'restart' || providerInstanceId === null) return null;
  if (!mayBeOver(action, clock.now())) return null;
  if (provider.catalog.offers.get(offerId)?.announcesRestart !== true) return null;
  const answer = await orProviderError(provider.client.restartStatus(providerInstanceId, region, call));
  if (!(answer instanceof ProviderError)) return answer.restarting;
  health.failed(record, answer);
  return null;
}
