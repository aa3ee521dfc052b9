import type { Timer } from '../ports/clock.ts';
import type { ReconcileContext, StepContext } from './context.ts';
import { CreateCalls } from './create-calls.ts';
import { pauseMs } from './retry.ts';
import { runStep } from './run-step.ts';
import type { Lease, ResourceKind } from './work.ts';

const LONGEST_NAP_MS = 60_000;
const AFTER_STORE_FAILURE_MS = 1_000;
/** While every place is taken: a step that ends wakes the reconciler anyway. */
const NAP_WHILE_FULL_MS = 100;

/**
 * Drives each row from what is wanted to what is: claims the work that is due, runs its step, and sleeps until
 * the next is due. A step that hangs takes one place of its own kind and delays nothing else.
 */
export class Reconciler {
  readonly #context: StepContext;
  readonly #owner: string;
  readonly #running = new Map<Promise<void>, ResourceKind>();
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;
  #pumping: Promise<void> | undefined;
  #isAsked = false;
  #isStopped = false;

  constructor(context: ReconcileContext) {
    const { clock, driver } = context;
    this.#context = {
      ...context,
      creates: new CreateCalls(clock, driver.manifest.createVisibleWithinMs),
    };
    this.#owner = context.random.bytes(8).toString('hex');
    this.#unsubscribe = context.store.subscribe({ workChanged: () => this.wake() });
  }

  /** Begins with the work that an earlier process left. */
  async start(): Promise<void> {
    await this.#context.store.endAbandonedLeases();
    this.wake();
  }

  /** Looks for work soon. Cheap to call often. */
  wake(): void {
    if (this.#isStopped) return;
    this.#isAsked = true;
    this.#pumping ??= this.#pump();
  }

  /** Claims nothing more and waits until the steps that run have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    await this.#pumping;
    await Promise.all(this.#running.keys());
  }

  async #pump(): Promise<void> {
    const { store, clock, log } = this.#context;
    try {
      while (this.#isAsked && !this.#isStopped) {
        this.#isAsked = false;
        await this.#claim('instance');
        await this.#claim('volume');
      }
      const next = await store.nextWorkAt();
      const nap = next === null ? LONGEST_NAP_MS : next - clock.now();
      this.#sleep(this.#isFull() ? Math.max(nap, NAP_WHILE_FULL_MS) : nap);
    } catch (error) {
      log.error({ err: error }, 'the store does not answer; durable work waits');
      this.#sleep(AFTER_STORE_FAILURE_MS);
    } finally {
      this.#pumping = undefined;
    }
    if (this.#isAsked) this.wake();
  }

  async #claim(resourceKind: ResourceKind): Promise<void> {
    const { store, clock, options } = this.#context;
    const limit = this.#freePlaces(resourceKind);
    if (limit <= 0) return;
    const now = clock.now();
    const leases = await store.claimWork({
      owner: this.#owner,
      now,
      leaseUntil: now + options.leaseMs,
      limit,
      resourceKind,
    });
    for (const lease of leases) this.#run(lease);
  }

  #freePlaces(resourceKind: ResourceKind): number {
    const taken = [...this.#running.values()].filter((kind) => kind === resourceKind).length;
    return this.#context.options.maxConcurrentSteps - taken;
  }

  #isFull(): boolean {
    return this.#freePlaces('instance') <= 0 || this.#freePlaces('volume') <= 0;
  }

  #run(lease: Lease): void {
    const step = this.#step(lease).finally(() => {
      this.#running.delete(step);
      this.wake();
    });
    this.#running.set(step, lease.resourceKind);
  }

  /** A step that throws is a fault of ours or the store's: it is tried again, later and later. */
  async #step(lease: Lease): Promise<void> {
    const { store, clock, log } = this.#context;
    try {
      await runStep(this.#context, lease);
    } catch (error) {
      log.error(
        { err: error, resource: lease.resourceId, step: lease.kind, attempt: lease.attempt },
        'a step broke off',
      );
      const notBefore = clock.now() + pauseMs(this.#context, lease);
      await store
        .transact(async (tx) => {
          // What a use case has put meanwhile is another step: neither the cookie nor the pause is its own.
          const isHeld = (await tx.work.check(lease)) === 'held';
          const again = { cookie: lease.cookie, notBefore, lastError: 'the step broke off' };
          await tx.work.release(lease, isHeld ? again : undefined);
        })
        .catch((failure) =>
          log.error({ err: failure, resource: lease.resourceId }, 'its lease will run out instead'),
        );
    }
  }

  #sleep(ms: number): void {
    this.#timer?.cancel();
    if (this.#isStopped) return;
    this.#timer = this.#context.clock.setTimer(Math.min(Math.max(ms, 0), LONGEST_NAP_MS), () => this.wake());
  }
}
