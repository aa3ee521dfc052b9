import { isClockInSync } from '../../work/lease-time.ts';
import { WorkQueue } from '../../work/work-queue.ts';
import { isRef } from '../model/attempt.ts';
import {
  type InstanceRecord,
  instanceLogNames,
  type VolumeRecord,
  volumeLogNames,
} from '../model/records.ts';
import { rowOf } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { StepTrace } from '../model/telemetry.ts';
import type { InstanceWorkKind, Lease, ResourceKind, VolumeWorkKind } from '../model/work.ts';
import { NotCalled } from '../platform/call-platform.ts';
import type { Facts, ReconcileContext, Recording } from '../platform/context.ts';
import { CallUnderWay } from '../platform/keep-lease.ts';
import { CLOCK_SKEW_ALARM } from '../platform/options.ts';
import type { StepContext } from '../steps/context.ts';
import { stepDestroy, stepDestroyAttempt, stepDestroyVolume } from '../steps/destroy.ts';
import { pauseMs } from '../steps/fail.ts';
import { stepCreate } from '../steps/instance/create.ts';
import { stepHold, stepRelease } from '../steps/instance/ended.ts';
import { stepObserve } from '../steps/instance/observe.ts';
import { stepRestart } from '../steps/instance/restart.ts';
import { stepStart } from '../steps/instance/start.ts';
import { stepStop } from '../steps/instance/stop.ts';
import { stepVerify } from '../steps/instance/verify.ts';
import { keepsFailing, raiseFailing } from '../steps/report-step.ts';
import { releaseLease } from '../steps/settle.ts';
import { stepAttach } from '../steps/volume/attach.ts';
import { stepCreateVolume, stepResize } from '../steps/volume/create.ts';

/** Runs the work that the use cases put for one platform, until each resource is in its desired state. */
export class Reconciler {
  readonly #context: StepContext & Facts;
  readonly #queue: WorkQueue<ResourceKind, Lease>;
  readonly #unsubscribe: () => void;
  #isClockSkewed = false;

  constructor(context: ReconcileContext) {
    const { store, platform, clock, random, log, health, options } = context;
    this.#context = { ...context, startedAt: clock.now(), placements: { last: Promise.resolve() } };
    const queue = new WorkQueue<ResourceKind, Lease>({
      store: {
        isShared: store.isShared,
        claimWork: (claim) => store.claimWork({ ...claim, platform }),
        nextWorkAt: () => store.nextWorkAt(platform),
      },
      clock,
      log,
      owner: random.bytes(8).toString('hex'),
      kinds: ['instance', 'volume'],
      leaseMs: options.leaseMs,
      maxConcurrentSteps: options.maxConcurrentSteps,
      // No work is claimed while the platform is not trusted. Its recovery wakes the queue.
      isFrozen: () => !health.isUp,
      isClockInSync: () => this.#checkClock(),
      run: (lease) => this.#step(lease),
    });
    this.#queue = queue;
    const unsubscribe = store.subscribe({
      workChanged: () => queue.wake(),
      commitsMissed: () => queue.wake(),
    });
    const unlisten = health.onRecovery(({ isOutage }) => {
      if (isOutage) queue.throttle();
      queue.wake();
    });
    this.#unsubscribe = () => {
      unsubscribe();
      unlisten();
    };
  }

  /** Starts with the work that an earlier process left. Nothing is claimed before. */
  start(): void {
    this.#queue.start();
  }

  /** Claims no more work and waits until the running steps have ended. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#queue.stop();
  }

  /**
   * Whether the clock is close enough to the database's for leases to be safe. Each change of the answer is logged
   * once.
   */
  #checkClock(): boolean {
    const { clock, options, log, alarms } = this.#context;
    const isSkewed = !isClockInSync(clock, options);
    if (isSkewed !== this.#isClockSkewed) {
      const offset = { offsetMs: Math.round(clock.offsetMs?.() ?? 0) };
      const alarm = { kind: 'clock_skew', subject: alarms.server } as const;
      if (isSkewed) alarms.raise({ ...alarm, platform: null, text: CLOCK_SKEW_ALARM, fields: offset }, log);
      else alarms.end(alarm);
      if (!isSkewed) log.info(offset, "this server's clock agrees with the database's again");
    }
    this.#isClockSkewed = isSkewed;
    return !isSkewed;
  }

  /** Runs a step. A step that throws is a bug or a store failure; it is retried with backoff. */
  async #step(lease: Lease): Promise<void> {
    try {
      await runStep(this.#context, lease);
    } catch (error) {
      await this.#breakOff(lease, error);
    }
  }

  async #breakOff(lease: Lease, error: unknown): Promise<void> {
    const { clock, log, store } = this.#context;
    const names = await namesOf(store, lease);
    const fields = { err: error, ...names, step: lease.kind, attempt: lease.attempt };
    if (error instanceof CallUnderWay)
      return log.warn(fields, 'a call to the platform outlasted its step; its lease expires by itself');
    // Nothing was sent. The next claim gets its own full lease.
    const isNotCalled = error instanceof NotCalled;
    if (isNotCalled) log.warn(fields, 'a step could not call the platform now; it will be claimed again');
    else log.error(fields, 'a step failed with an error');
    if (!isNotCalled && keepsFailing(this.#context, lease))
      raiseFailing(this.#context, lease, names, error instanceof Error ? error.message : String(error));
    const notBefore = clock.now() + pauseMs(this.#context, lease);
    const again = { cookie: lease.cookie, notBefore, lastError: 'the step failed with an error' };
    await releaseLease(this.#context, lease, again).catch((failure) =>
      log.error({ err: failure, ...names }, 'the lease could not be released; it expires by itself'),
    );
  }
}

/** The log fields for the resource of a lease. While the store does not answer, they have only its id. */
async function namesOf({ read }: Pick<Store, 'read'>, { resourceId, resourceKind }: Lease): Promise<object> {
  if (isRef(resourceId)) return { ref: resourceId };
  const row = await rowOf(read, resourceKind, resourceId).catch(() => null);
  if (row === null) return { [resourceKind]: resourceId };
  return 'offerId' in row ? instanceLogNames(row) : volumeLogNames(row);
}

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

async function putOff(context: Recording, lease: Lease): Promise<void> {
  const { clock, options } = context;
  const notBefore = clock.now() + options.watchIntervalMs;
  await releaseLease(context, lease, { cookie: lease.cookie, notBefore, lastError: ON_HOLD });
}

/** Runs the step of a lease. Throws only if the store does, or for a bug. */
async function runStep(given: StepContext & Facts, lease: Lease): Promise<void> {
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
  { telemetry, clock }: Recording,
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
