import type { Inventory } from '../orchestrator/model/inventory.ts';
import type { FailureCode, Listing, OwnerRef, Step } from '../orchestrator/model/platform-driver.ts';
import type { Clock, Timer } from '../ports/clock.ts';
import type { Answer, Method } from './platform.ts';
import { done, failed, pending } from './steps.ts';

/**
 * `fail-before`: rejects, no effect · `fail-after`: takes effect, rejects · `hang`: no effect and no answer until
 * `release()`, then goes through · `unknown`: get, list, inventory answer unknown · `lie-empty`: list, inventory
 * answer empty · `lie-gone`: get answers gone · `lie-done`: destroy, attach, detach answer done, no effect.
 */
export type PlainFault =
  | 'none'
  | 'fail-before'
  | 'fail-after'
  | 'hang'
  | 'unknown'
  | 'lie-empty'
  | 'lie-gone'
  | 'lie-done';

type Failed = Extract<Step<never>, { outcome: 'failed' }>;

/**
 * `delay`: takes effect, answers after `ms` · `late`: goes through after `ms` · `part`: a listing ends after `items`,
 * an inventory counts `items` at most · `lag`: a listing omits items younger than `ms` · `stuck`: a step is pending,
 * no effect · `misclaim`: a step fails as given, and took effect if `isDone`.
 */
export type Fault =
  | PlainFault
  | { kind: 'delay' | 'late' | 'lag'; ms: number }
  | { kind: 'part'; items: number }
  | { kind: 'stuck'; pollAfterMs: number }
  | { kind: 'misclaim'; code: FailureCode; sideEffect: Failed['sideEffect']; isDone: boolean };

export interface DriverCall {
  method: Method | 'consoleTail';
  /** Undefined for a listing. */
  ref: OwnerRef | undefined;
}

/** Chooses the fault for each call. */
export type FaultPlan = (call: DriverCall) => Fault | Promise<Fault>;

/** The error with which an injected fault rejects. */
export class InjectedFault extends Error {
  override readonly name = 'InjectedFault';
}

const unknown = { answer: 'unknown', reason: 'injected fault' } as const;
const countedNone = { answer: 'counted', free: [], counted: [] } as const satisfies Inventory;

/** The false answer; undefined: the fault does not fit the method. */
function lieOf(fault: PlainFault, method: DriverCall['method']): Answer | undefined {
  const name = method.replace('volumes.', '');
  if (fault === 'unknown' && ['get', 'list', 'inventory'].includes(name)) return unknown;
  if (fault === 'lie-empty' && name === 'list') return { answer: 'listed', items: [] };
  if (fault === 'lie-empty' && name === 'inventory') return countedNone;
  if (fault === 'lie-gone' && name === 'get') return { answer: 'gone' };
  if (fault === 'lie-done' && ['destroy', 'attach', 'detach'].includes(name)) return done(null);
  return undefined;
}

/** Whether the call changes something: it is no read. */
export function isStep({ method }: Pick<DriverCall, 'method'>): boolean {
  return !/(get|list|inventory|consoleTail)$/.test(method);
}

/** Injects the planned fault into each call. `delay`, `late` and `lag` need `clock`. */
export class FaultInjector {
  readonly calls: DriverCall[] = [];
  readonly #plan: FaultPlan;
  readonly #clock: Clock | undefined;
  readonly #closed = Promise.withResolvers<never>();
  readonly #timers = new Set<Timer>();
  #gate = Promise.withResolvers<void>();

  constructor(plan: FaultPlan, clock?: Clock) {
    this.#plan = plan;
    this.#clock = clock;
    this.#closed.promise.catch(() => {});
  }

  /**
   * Passes a call to the platform and its answer back, with the planned fault. When `signal` aborts, a call with a
   * fault rejects at once but may still take effect.
   */
  async carry<T>(
    method: DriverCall['method'],
    ref: OwnerRef | undefined,
    call: () => T | Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const made = { method, ref };
    this.calls.push(made);
    const planned = this.#plan(made);
    const fault = planned instanceof Promise ? await planned : planned;
    const answering =
      typeof fault === 'string' ? this.#plain(made, fault, call) : this.#graded(made, fault, call);
    if (signal === undefined || fault === 'none') return answering;
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(new InjectedFault(`${method} was cancelled`)));
    answering.catch(() => undefined);
    return Promise.race([answering, promise]);
  }

  /** Lets hanging calls go through. */
  release(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }

  /** Rejects the calls that wait. They no longer reach the platform. */
  close(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#closed.reject(new InjectedFault('the driver was closed'));
  }

  async #plain<T>(made: DriverCall, fault: PlainFault, call: () => T | Promise<T>): Promise<T> {
    switch (fault) {
      case 'none':
        return call();
      case 'fail-before':
        throw new InjectedFault(`${made.method} did not reach the platform`);
      case 'fail-after':
        await call();
        throw new InjectedFault(`the answer to ${made.method} was lost`);
      case 'hang':
        await Promise.race([this.#gate.promise, this.#closed.promise]);
        return call();
    }
    const answer = lieOf(fault, made.method);
    if (answer === undefined) throw unfit(fault, made);
    return answer as T;
  }

  async #graded<T>(
    made: DriverCall,
    fault: Exclude<Fault, PlainFault>,
    call: () => T | Promise<T>,
  ): Promise<T> {
    switch (fault.kind) {
      case 'delay': {
        const answer = await call();
        await this.#wait(made, fault.ms);
        return answer;
      }
      case 'late':
        await this.#wait(made, fault.ms);
        return call();
      case 'part':
      case 'lag':
        return this.#shorten(made, fault, (await call()) as Answer) as T;
      case 'stuck':
        if (!isStep(made)) throw unfit(fault.kind, made);
        return pending('stuck', fault.pollAfterMs) as T;
      case 'misclaim':
        if (!isStep(made)) throw unfit(fault.kind, made);
        if (fault.isDone) await call();
        return failed(fault.code, `${made.method} reported an injected failure`, fault.sideEffect) as T;
    }
  }

  #shorten(
    made: DriverCall,
    fault: { kind: 'part'; items: number } | { kind: 'delay' | 'late' | 'lag'; ms: number },
    answer: Answer,
  ): Answer {
    if ('free' in answer && fault.kind === 'part') {
      const free = answer.free.map((place) => ({ ...place, units: Math.min(place.units, fault.items) }));
      return { ...answer, free };
    }
    if (!made.method.endsWith('list')) throw unfit(fault.kind, made);
    if (!('items' in answer)) return answer;
    const { items } = answer as Extract<Listing<{ createdAt: number }>, { items: unknown }>;
    if (fault.kind === 'part') return { answer: 'listed', items: items.slice(0, fault.items) };
    const youngest = this.#time(made).now() - fault.ms;
    return { answer: 'listed', items: items.filter(({ createdAt }) => createdAt <= youngest) };
  }

  async #wait(made: DriverCall, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#time(made).setTimer(ms, resolve);
    this.#timers.add(timer);
    await Promise.race([promise, this.#closed.promise]);
    this.#timers.delete(timer);
  }

  #time({ method }: DriverCall): Clock {
    if (this.#clock === undefined) throw new TypeError(`a fault of ${method} needs a clock`);
    return this.#clock;
  }
}

function unfit(fault: string, { method }: DriverCall): TypeError {
  return new TypeError(`the fault ${fault} does not fit ${method}`);
}
