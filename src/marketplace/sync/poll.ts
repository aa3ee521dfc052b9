import { ProviderError } from '../../client/orchestrator-client.ts';
import { type Applied, applyObservation } from '../deployments/apply-observation.ts';
import { needsList, type Observation } from '../deployments/observe.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { isAwaited } from '../model/intent.ts';
import type { SyncContext } from './context.ts';
import { failOverdue, isOverdue } from './launch.ts';
import { settleAction } from './settle-action.ts';

/** Between two polls while a request waits for what they show. */
const AWAITED_MS = 2_000;
/** Polls that are due within such a time begin at the same moment: the process wakes for all of them once. */
const TOGETHER_MS = 250;

/** Reads the instance of a deployment and applies what it shows. Returns the pause until the next poll. */
export async function poll(context: SyncContext, record: DeploymentRecord): Promise<number> {
  const begunAt = context.clock.now();
  const observation = await observe(context, record, begunAt);
  const applied = await applyObservation(context, record, observation, begunAt);
  report(context, record, observation, applied);
  if (applied.outcome === 'confirmed')
    context.observations.add({ id: record.id, revision: record.revision, at: begunAt });
  if (applied.outcome === 'unproved') {
    context.unproved.set(record.id, { endpoint: applied.endpoint, seenAt: begunAt });
    context.beginProof(record.id);
    return pauseMs(context, record, begunAt);
  }
  const now = applied.outcome === 'written' ? applied.record : record;
  if (now.stoppedAt !== null) return 0;
  if (isOverdue(context, now) && applied.outcome !== 'dropped') {
    await failOverdue(context, now);
    return 0;
  }
  await settleAction(context, now, observation);
  return pauseMs(context, now, begunAt);
}

async function observe(
  context: SyncContext,
  record: DeploymentRecord,
  begunAt: number,
): Promise<Observation> {
  const { provider, health, call, options } = context;
  const id = record.providerInstanceId ?? '';
  try {
    return { instance: await provider.client.getInstance(id, record.region, call) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.problem !== 'not_found') {
      health.failed(record, error);
      return { problem: error.problem };
    }
  }
  if (!needsList(record, begunAt, options.polling)) return { gone: true };
  try {
    const listed = await provider.client.listInstances(call);
    return { gone: true, isListed: listed.some((instance) => instance.id === id) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    health.failed(record, error);
    return { gone: true };
  }
}

function report(
  { health, log }: SyncContext,
  record: DeploymentRecord,
  observation: Observation,
  applied: Applied,
): void {
  if ('problem' in observation || applied.outcome === 'dropped') return;
  const { status, providerId } = record;
  const problem = problemOf(applied);
  if (problem !== undefined) health.ignored(record, problem);
  else health.answered(record.id);
  if (applied.outcome !== 'written' || applied.record.status === status) return;
  const { status: to } = applied.record;
  log.info(
    { ...logNames(record), provider: providerId, from: status, to, why: applied.why },
    'a deployment changed',
  );
}

/** Why the observation was not applied as it is. */
function problemOf(applied: Exclude<Applied, { outcome: 'dropped' }>): string | undefined {
  if (applied.outcome === 'unproved') return undefined;
  if (applied.outcome === 'written') return applied.record.suspicion === null ? undefined : applied.why;
  return applied.why;
}

/** Between two polls of an active deployment (O: "every 10 to 30 seconds"): sooner while something is under way. */
function pauseMs({ clock, random, options }: SyncContext, record: DeploymentRecord, begunAt: number): number {
  if (record.status !== 'deploying' && isAwaited(record.action, clock.now()))
    return Math.max(0, begunAt + AWAITED_MS - clock.now());
  const [least, most] = options.polling.intervalMs;
  const isUnderWay = record.status === 'deploying' || record.action !== null || record.suspicion !== null;
  const span = (most - least) * (isUnderWay ? 0.25 : 1);
  const dueAt = begunAt + least + Math.round(random.next() * span);
  return Math.max(0, Math.max(begunAt + least, dueAt - (dueAt % TOGETHER_MS)) - clock.now());
}
