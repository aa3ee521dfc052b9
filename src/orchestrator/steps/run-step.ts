import { isRef } from '../model/attempt.ts';
import type { InstanceRecord, VolumeRecord } from '../model/records.ts';
import type { InstanceWorkKind, Lease, VolumeWorkKind } from '../model/work.ts';
import { StepTrace } from '../platform/step-trace.ts';
import type { StepContext } from './context.ts';
import { stepDestroy, stepDestroyAttempt, stepDestroyVolume } from './destroy.ts';
import { stepCreate } from './instance/create.ts';
import { stepHold } from './instance/hold.ts';
import { stepObserve } from './instance/observe.ts';
import { stepRelease } from './instance/release.ts';
import { stepRestart } from './instance/restart.ts';
import { stepStart } from './instance/start.ts';
import { stepStop } from './instance/stop.ts';
import { stepVerify } from './instance/verify.ts';
import { releaseLease } from './settle.ts';
import { stepAttach } from './volume/attach.ts';
import { stepCreateVolume } from './volume/create.ts';
import { stepResize } from './volume/resize.ts';

type Step<Row> = (context: StepContext, lease: Lease, record: Row) => Promise<void>;

const instanceSteps: Record<InstanceWorkKind, Step<InstanceRecord>> = {
  create: stepCreate,
  verify: stepVerify,
  stop: stepStop,
  start: stepStart,
  restart: stepRestart,
  destroy: stepDestroy,
  observe: stepObserve,
  hold: stepHold,
  release: stepRelease,
};

const volumeSteps: Record<VolumeWorkKind, Step<VolumeRecord>> = {
  create: stepCreateVolume,
  attach: stepAttach,
  resize: stepResize,
  destroy: stepDestroyVolume,
};

const ON_HOLD = 'the database was restored, and its current state is not known yet';

async function putOff(context: StepContext, lease: Lease): Promise<void> {
  const { clock, options } = context;
  const notBefore = clock.now() + options.watchIntervalMs;
  await releaseLease(context, lease, { cookie: lease.cookie, notBefore, lastError: ON_HOLD });
}

/** Runs the step of a lease. Throws only if the store does, or for a bug. */
export async function runStep(given: StepContext, lease: Lease): Promise<void> {
  if (given.restoreHold.holds(lease)) return putOff(given, lease);
  const trace = new StepTrace(given.clock.now());
  try {
    await run({ ...given, trace }, lease);
    recordEnd(given, lease, trace, trace.settled ?? { next: 'lost', problem: undefined });
  } catch (error) {
    trace.begin();
    recordEnd(given, lease, trace, { next: 'error', problem: String(error) });
    throw error;
  }
}

function recordEnd(
  { telemetry, clock }: StepContext,
  lease: Lease,
  { requestId, begunAt, calls, verdict, settled }: StepTrace,
  { next, problem }: NonNullable<StepTrace['settled']>,
): void {
  telemetry?.stepEnded({
    lease,
    requestId,
    begunAt,
    endedAt: clock.now(),
    calls,
    next,
    problem,
    verdict: settled && verdict,
  });
}

async function run(context: StepContext & { trace: StepTrace }, lease: Lease): Promise<void> {
  const { store, trace } = context;
  if (isRef(lease.resourceId)) {
    const attempt = await store.read.attempts.byRef(lease.resourceId);
    if (attempt === null) throw new Error(`work for an attempt without a row: ${lease.resourceId}`);
    return stepDestroyAttempt(context, lease, attempt);
  }
  if (lease.resourceKind === 'instance') {
    const record = await store.read.instances.byId(lease.resourceId);
    if (record === null) throw new Error(`work for an instance without a row: ${lease.resourceId}`);
    trace.requestId = record.spec.requestId;
    return instanceSteps[lease.kind as InstanceWorkKind](context, lease, record);
  }
  const record = await store.read.volumes.byId(lease.resourceId);
  if (record === null) throw new Error(`work for a volume without a row: ${lease.resourceId}`);
  trace.requestId = record.requestId ?? undefined;
  return volumeSteps[lease.kind as VolumeWorkKind](context, lease, record);
}
