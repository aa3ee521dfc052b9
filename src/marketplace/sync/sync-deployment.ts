import { type MarkedInstance, orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import { activeStatuses } from '../contract/deployment.ts';
import { type Applied, applyObservation } from '../deployments/apply-observation.ts';
import { needsList, type Observation } from '../deployments/observe.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { isAwaited } from '../model/intent.ts';
import { cleanUp } from './cleanup.ts';
import type { SyncContext } from './context.ts';
import { settleAction } from './intents.ts';
import { failIfOverdue, findLaunched, launch } from './launch.ts';

/** Pause between two polls while a request waits for their result. */
export const AWAITED_MS = 2_000;
/** Polls due within this time start together, so that the process wakes up once for all of them. */
const TOGETHER_MS = 250;

/** A provider's answer about an instance. */
interface PollAnswer {
  answer: MarkedInstance | ProviderError | 'unchanged';
  /** When the request was sent. */
  begunAt: number;
  /** The revision of the row when the request was sent. */
  revision: number;
}

/** Runs the next step. Returns the pause until the following one in milliseconds; null: nothing is left to do. */
export async function syncDeployment(context: SyncContext, id: string): Promise<number | null> {
  const last = context.answers.take(id);
  if (last === undefined) return syncByRow(context, id);
  const answered = await ask(context, last, last.mark);
  if (answered.answer === 'unchanged') {
    context.answers.putBack(id, last);
    return confirmAgain(context, id, answered);
  }
  // A different answer is judged by the last confirmation, which must therefore be written first.
  await context.confirmations.flush(id);
  return syncByRow(context, id, answered);
}

async function syncByRow(context: SyncContext, id: string, answered?: PollAnswer): Promise<number | null> {
  const record = await context.store.read.deployments.byId(id);
  if (record === null) return null;
  if (!activeStatuses.includes(record.status))
    return record.cleanup === 'wanted' ? cleanUp(context, record) : null;
  switch (record.launch.state) {
    case 'wanted':
      return launch(context, record);
    case 'sent':
      return findLaunched(context, record);
    case 'made':
      // An answer to a request sent before the row changed says nothing about the new row.
      if (answered?.revision === record.revision) return poll(context, record, answered);
      return poll(context, record, await ask(context, record, null));
    case 'over':
      return null;
  }
}

/** Records that the deployment was unchanged at `begunAt`. Returns the pause until the next poll. */
function confirmAgain(
  context: SyncContext,
  id: string,
  { revision, begunAt }: Pick<PollAnswer, 'revision' | 'begunAt'>,
): number {
  context.health.answered(id);
  context.confirmations.add({ id, revision, at: begunAt });
  return pauseMs(context, begunAt, false);
}

/** Applies an answer about a deployment's instance. Returns the pause until the next poll. */
async function poll(context: SyncContext, record: DeploymentRecord, answered: PollAnswer): Promise<number> {
  const { answer, begunAt } = answered;
  if (answer === 'unchanged') return confirmAgain(context, record.id, answered);
  const observation = await toObservation(context, record, answer, begunAt);
  const applied = await applyObservation(context, record, observation, begunAt);
  report(context, record, observation, applied);
  if (applied.outcome === 'confirmed') {
    context.confirmations.add({ id: record.id, revision: record.revision, at: begunAt });
    if (applied.why === undefined && !(answer instanceof ProviderError)) keep(context, record, answer);
  }
  if (applied.outcome === 'unproved') {
    context.awaitingProof.set(record.id, { endpoint: applied.endpoint, seenAt: begunAt });
    context.beginProof(record.id);
    return nextPollMs(context, record, begunAt);
  }
  const latest = applied.outcome === 'written' ? applied.record : record;
  if (latest.stoppedAt !== null) return 0;
  if (applied.outcome !== 'dropped' && (await failIfOverdue(context, latest))) return 0;
  await settleAction(context, latest, observation);
  return nextPollMs(context, latest, begunAt);
}

/** Requests an instance. `mark`: the mark of the last answer, if known. */
async function ask(
  { provider, clock, call }: SyncContext,
  {
    providerInstanceId,
    region,
    revision,
  }: Pick<DeploymentRecord, 'providerInstanceId' | 'region' | 'revision'>,
  mark: string | null,
): Promise<PollAnswer> {
  const begunAt = clock.now();
  const polling = provider.client.pollInstance(providerInstanceId ?? '', region, mark, call);
  return { answer: await orProviderError(polling), begunAt, revision };
}

/** Keeps the answer of a deployment without pending changes. An equal answer then confirms it later too. */
function keep({ answers }: SyncContext, record: DeploymentRecord, { mark }: MarkedInstance): void {
  const { id, status, action, providerInstanceId, region, revision } = record;
  if (status === 'deploying' || action !== null || providerInstanceId === null) return;
  answers.keep(id, { providerInstanceId, region, revision, mark });
}

async function toObservation(
  context: SyncContext,
  record: DeploymentRecord,
  answer: MarkedInstance | ProviderError,
  begunAt: number,
): Promise<Observation> {
  const { provider, health, call, options } = context;
  if (!(answer instanceof ProviderError)) {
    const { instance } = answer;
    return {
      instance,
      isVolumeChanging: instance.status !== 'ONLINE' && (await isVolumeChanging(context, record)),
    };
  }
  if (answer.problem !== 'not_found') {
    health.failed(record, answer);
    return { problem: answer.problem };
  }
  if (!needsList(record, begunAt, options.polling)) return { gone: true };
  const listed = await orProviderError(provider.client.listInstances(call));
  if (!(listed instanceof ProviderError))
    return { gone: true, isListed: listed.some(({ id }) => id === record.providerInstanceId) };
  health.failed(record, listed);
  return { gone: true };
}

/** Whether an attach or detach was sent lately. A volume that is not attached or detached later changes the revision. */
async function isVolumeChanging(
  { store, clock, options }: SyncContext,
  { id: deploymentId }: DeploymentRecord,
): Promise<boolean> {
  const attachments = await store.read.volumes.attachmentsOf({ deploymentId });
  return attachments.some(
    ({ intent }) => intent !== null && clock.now() - (intent.sentAt ?? 0) < options.polling.actionMs,
  );
}

function report(
  { health, log }: SyncContext,
  record: DeploymentRecord,
  observation: Observation,
  applied: Applied,
): void {
  if ('problem' in observation || applied.outcome === 'dropped') return;
  const { status } = record;
  const problem = problemOf(applied);
  if (problem !== undefined) health.ignored(record, problem);
  else health.answered(record.id);
  if (applied.outcome !== 'written' || applied.record.status === status) return;
  const { status: to } = applied.record;
  log.info({ ...logNames(record), from: status, to, why: applied.why }, 'a deployment changed');
}

/** Why the observation was not fully applied; undefined if it was. */
function problemOf(applied: Exclude<Applied, { outcome: 'dropped' }>): string | undefined {
  const isApplied = applied.outcome === 'written' && applied.record.suspicion === null;
  return applied.outcome === 'unproved' || isApplied ? undefined : applied.why;
}

function nextPollMs(context: SyncContext, record: DeploymentRecord, begunAt: number): number {
  const now = context.clock.now();
  if (record.status !== 'deploying' && isAwaited(record.action, now))
    return Math.max(0, begunAt + AWAITED_MS - now);
  const isUnderWay = record.status === 'deploying' || record.action !== null || record.suspicion !== null;
  return pauseMs(context, begunAt, isUnderWay);
}

/** O: "every 10 to 30 seconds". The pause is shorter while a change is in progress. */
function pauseMs({ clock, random, options }: SyncContext, begunAt: number, isUnderWay: boolean): number {
  const [least, most] = options.polling.intervalMs;
  const span = (most - least) * (isUnderWay ? 0.25 : 1);
  const dueAt = begunAt + least + Math.round(random.next() * span);
  return Math.max(0, Math.max(begunAt + least, dueAt - (dueAt % TOGETHER_MS)) - clock.now());
}
