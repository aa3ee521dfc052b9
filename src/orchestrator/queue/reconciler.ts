import type { Timer } from '../../ports/clock.ts';
import type { Lease, ResourceKind } from '../model/work.ts';
import { LeaseEnding } from '../platform/call-platform.ts';
import { CLOCK_SKEW_ALARM, isClockInSync } from '../platform/clock-skew.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { CreateCalls, type StepContext } from '../steps/context.ts';
import { pauseMs } from '../steps/retry.ts';
import { runStep } from '../steps/run-step.ts';
import { giveBack } from '../steps/settle.ts';
import { namesOf } from './log-names.ts';
import { RecoveryThrottle } from './recovery-throttle.ts';
import { StepSlots } from './step-slots.ts';

const LONGEST_NAP_MS = 60_000;
/** How long an answer to a create may be late beyond all that the platform says of itself. */
const FORGET_CREATE_MS = 10 * 60_000;
const AFTER_STORE_FAILURE_MS = 1_000;
/** While every place is taken: a step that ends wakes the reconciler anyway, one that turns slow does not. */
const NAP_WHILE_FULL_MS = 100;
/** While what is due is locked by somebody, and while this process does not know what time it is. */
const NAP_WHILE_KEPT_MS = 100;

/**
 * Drives each row from what is wanted to what is: claims the work that is due, runs its step, and sleeps until
 * the next is due. A step that hangs delays nothing else for long: see {@link StepSlots}.
 */
export class Reconciler {
  readonly #context: StepContext;
  readonly #owner: string;
  readonly #running = new Set<Promise<void>>();
  readonly #places: StepSlots;
  readonly #throttles: Record<ResourceKind, RecoveryThrottle>;
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;
  #pumping: Promise<void> | undefined;
  #isAsked = false;
  #isStarted = false;
  #isStopped = false;
  #isOutOfStep = false;
  #isStoreDown = false;

  constructor(context: ReconcileContext) {
    const { clock, options } = context;
    this.#context = { ...context, creates: newCreateCalls(context), startedAt: clock.now() };
    this.#places = new StepSlots(clock, options.maxConcurrentSteps);
    this.#owner = context.random.bytes(8).toString('hex');
    const unsubscribe = context.store.subscribe({ workChanged: () => this.wake() });
    this.#throttles = { instance: new RecoveryThrottle(clock), volume: new RecoveryThrottle(clock) };
    const unlisten = context.health.onRecovery(({ isOutage }) => {
      if (isOutage) for (const warmUp of Object.values(this.#throttles)) warmUp.begin();
      this.wake();
    });
    this.#unsubscribe = () => {
      unsubscribe();
      unlisten();
    };
  }

  /** Begins with the work that an earlier process left. Before, nothing is claimed. */
  async start(): Promise<void> {
    await this.#context.store.endAbandonedLeases();
    this.#isStarted = true;
    this.wake();
  }

  /** Looks for work soon. Cheap to call often. */
  wake(): void {
    // A platform that cannot be believed freezes all work; its recovery wakes.
    if (this.#isStopped || !this.#isStarted || !this.#context.health.isUp) return;
    this.#isAsked = true;
    this.#pumping ??= this.#pump();
  }

  /** Claims nothing more and waits until the steps that run have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    await this.#pumping;
    await Promise.all(this.#running);
  }

  async #pump(): Promise<void> {
    const { store, clock, health, log } = this.#context;
    try {
      while (this.#isAsked && !this.#isStopped && health.isUp) {
        this.#isAsked = false;
        if (!this.#checkClock()) return this.#sleep(NAP_WHILE_KEPT_MS);
        await this.#claim('instance');
        await this.#claim('volume');
      }
      const next = await store.nextWorkAt();
      if (this.#isStoreDown) log.info({}, 'the store answers again');
      this.#isStoreDown = false;
      const nap = next === null ? LONGEST_NAP_MS : next - clock.now();
      const { instance, volume } = this.#throttles;
      const keptMs = nap <= 0 ? NAP_WHILE_KEPT_MS : 0;
      const leastMs = Math.max(this.#isFull() ? NAP_WHILE_FULL_MS : keptMs, instance.pauseMs, volume.pauseMs);
      this.#sleep(Math.max(nap, leastMs));
    } catch (error) {
      if (!this.#isStoreDown) log.error({ err: error }, 'the store does not answer; durable work waits');
      this.#isStoreDown = true;
      this.#sleep(AFTER_STORE_FAILURE_MS);
    } finally {
      this.#pumping = undefined;
    }
    if (this.#isAsked) this.wake();
  }

  async #claim(resourceKind: ResourceKind): Promise<void> {
    const { store, clock, options } = this.#context;
    const limit = Math.min(this.#places.free(resourceKind), this.#throttles[resourceKind].allowance);
    if (limit === 0) return;
    const now = clock.now();
    const leases = await store.claimWork({
      owner: this.#owner,
      now,
      leaseUntil: now + options.leaseMs,
      limit,
      resourceKind,
    });
    this.#throttles[resourceKind].take(leases.length);
    for (const lease of leases) this.#run(lease);
  }

  /** Tells once when the time here has left the database's too far for a lease to mean anything. */
  #checkClock(): boolean {
    const { clock, options, log } = this.#context;
    const isOutOfStep = !isClockInSync(clock, options);
    if (isOutOfStep !== this.#isOutOfStep) {
      const offset = { offsetMs: Math.round(clock.offsetMs?.() ?? 0) };
      if (isOutOfStep) log.error(offset, CLOCK_SKEW_ALARM);
      else log.info(offset, 'the time here is near that of the database again');
    }
    this.#isOutOfStep = isOutOfStep;
    return !isOutOfStep;
  }

  #isFull(): boolean {
    return this.#places.free('instance') === 0 || this.#places.free('volume') === 0;
  }

  #run(lease: Lease): void {
    const leave = this.#places.take(lease.resourceKind);
    const step = this.#step(lease).finally(() => {
      leave();
      this.#running.delete(step);
      this.wake();
    });
    this.#running.add(step);
  }

  /** A step that throws is a fault of ours or the store's: it is tried again, later and later. */
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
    // Nothing was sent: whoever claims it next begins with a lease of its own.
    const isLate = error instanceof LeaseEnding;
    if (isLate) log.warn(fields, 'a step came to its call too late for its lease; it is given back');
    else log.error(fields, 'a step broke off');
    const notBefore = clock.now() + pauseMs(this.#context, lease);
    const again = { cookie: lease.cookie, notBefore, lastError: 'the step broke off' };
    await giveBack(this.#context, lease, again).catch((failure) =>
      log.error({ err: failure, ...names }, 'its lease will run out instead'),
    );
  }

  #sleep(ms: number): void {
    this.#timer?.cancel();
    if (this.#isStopped) return;
    const nap = Math.min(Math.max(ms, 0), this.#longestNapMs());
    this.#timer = this.#context.clock.setTimer(nap, () => this.wake());
  }

  /** Nobody is woken by what another process writes; if that one dies, its work is found within the time of a lease. */
  #longestNapMs(): number {
    const { store, options } = this.#context;
    return store.isShared ? Math.min(LONGEST_NAP_MS, options.leaseMs / 3) : LONGEST_NAP_MS;
  }
}

function newCreateCalls({ clock, options, driver }: ReconcileContext): CreateCalls {
  const { createVisibleWithinMs } = driver.manifest;
  return new CreateCalls(clock, options.callTimeoutMs + createVisibleWithinMs + FORGET_CREATE_MS);
}
