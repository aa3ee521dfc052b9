import type {
  FailureCode,
  Inventory,
  Listing,
  OwnerRef,
  PlatformDriver,
  Presence,
  Step,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import type { Clock, Timer } from '../../ports/clock.ts';

/**
 * `fail-before`: the call rejects, nothing was done · `fail-after`: the call is done, its answer is
 * lost · `hang`: no answer, and nothing done, until `release()`; then the call goes through, late ·
 * `unknown`: a look answers unknown · `lie-empty`: a listing is empty, an inventory names no offer · `lie-done`: a destroy says done
 * and does nothing.
 */
export type PlainFault =
  | 'none'
  | 'fail-before'
  | 'fail-after'
  | 'hang'
  | 'unknown'
  | 'lie-empty'
  | 'lie-done';

type Failed = Extract<Step<never>, { outcome: 'failed' }>;

/**
 * `delay`: the call is done at once and answers after `ms` · `late`: nothing is done until `ms` are over, then the
 * call goes through · `part`: a listing ends after `items`, and does not say so · `lag`: a listing lacks what is
 * younger than `ms` · `misclaim`: a step fails with that code and that side effect, whether it `isDone` or not.
 */
export type Fault =
  | PlainFault
  | { kind: 'delay' | 'late' | 'lag'; ms: number }
  | { kind: 'part'; items: number }
  | { kind: 'misclaim'; code: FailureCode; sideEffect: Failed['sideEffect']; isDone: boolean };

export interface DriverCall {
  method: Exclude<keyof PlatformDriver, 'manifest' | 'volumes' | 'close'> | `volumes.${keyof VolumeDriver}`;
  /** Undefined for a listing. */
  ref: OwnerRef | undefined;
}

/** Decides, once per call, what goes wrong with it. */
export type FaultPlan = (call: DriverCall) => Fault;

export interface FaultyDriver extends PlatformDriver {
  /** Every call so far, in order. */
  readonly calls: readonly DriverCall[];
  /** Lets the calls that hang go through to the platform. */
  release(): void;
}

/** What an injected fault rejects with. */
export class InjectedFault extends Error {
  override readonly name = 'InjectedFault';
}

type Method = DriverCall['method'];
type Answers<T> = Partial<Record<PlainFault, T>>;

const unknown = { answer: 'unknown', reason: 'injected fault' } as const;
const empty = { answer: 'listed', items: [] } as const satisfies Listing<never>;
const countedNone = { answer: 'counted', free: [], counted: [] } as const satisfies Inventory;
const lieDone: Answers<Step<null>> = { 'lie-done': { outcome: 'done', value: null } };

/**
 * The driver with faults injected as `plan` says. `close` rejects what is still out. `clock` is needed for what takes
 * or tells time: `delay`, `late` and `lag`.
 */
export function withFaults(driver: PlatformDriver, plan: FaultPlan, clock?: Clock): FaultyDriver {
  const injector = new Injector(plan, clock);
  const { volumes } = driver;
  return {
    manifest: driver.manifest,
    calls: injector.calls,
    get: (ref) => injector.look('get', ref, () => driver.get(ref)),
    list: () => injector.list('list', () => driver.list()),
    create: (spec, cookie) => injector.step('create', spec.ref, () => driver.create(spec, cookie)),
    stop: (ref, cookie) => injector.step('stop', ref, () => driver.stop(ref, cookie)),
    start: (ref, cookie) => injector.step('start', ref, () => driver.start(ref, cookie)),
    restart: (ref, id, cookie) => injector.step('restart', ref, () => driver.restart(ref, id, cookie)),
    destroy: (ref, cookie) => injector.step('destroy', ref, () => driver.destroy(ref, cookie), lieDone),
    ...(driver.inventory !== undefined && {
      inventory: () => injector.count('inventory', () => driver.inventory?.() as Promise<Inventory>),
    }),
    ...(driver.consoleTail !== undefined && {
      consoleTail: (ref) => injector.read('consoleTail', ref, async () => driver.consoleTail?.(ref)),
    }),
    ...(volumes !== undefined && { volumes: withVolumeFaults(volumes, injector) }),
    release: () => injector.release(),
    async close() {
      injector.close();
      await driver.close();
    },
  };
}

function withVolumeFaults(volumes: VolumeDriver, injector: Injector): VolumeDriver {
  return {
    get: (ref) => injector.look('volumes.get', ref, () => volumes.get(ref)),
    list: () => injector.list('volumes.list', () => volumes.list()),
    create: (spec, cookie) => injector.step('volumes.create', spec.ref, () => volumes.create(spec, cookie)),
    attach: (ref, machine, cookie) =>
      injector.step('volumes.attach', ref, () => volumes.attach(ref, machine, cookie)),
    detach: (ref, machine, cookie) =>
      injector.step('volumes.detach', ref, () => volumes.detach(ref, machine, cookie)),
    resize: (ref, sizeGb, cookie) =>
      injector.step('volumes.resize', ref, () => volumes.resize(ref, sizeGb, cookie)),
    destroy: (ref, cookie) =>
      injector.step('volumes.destroy', ref, () => volumes.destroy(ref, cookie), lieDone),
  };
}

/** Gives each call the fault that is planned for it. */
class Injector {
  readonly calls: DriverCall[] = [];
  readonly #plan: FaultPlan;
  readonly #clock: Clock | undefined;
  readonly #closed = Promise.withResolvers<never>();
  readonly #timers = new Set<Timer>();
  #gate = Promise.withResolvers<void>();

  constructor(plan: FaultPlan, clock: Clock | undefined) {
    this.#plan = plan;
    this.#clock = clock;
    this.#closed.promise.catch(() => {});
  }

  look<T>(method: Method, ref: OwnerRef, call: () => Promise<Presence<T>>): Promise<Presence<T>> {
    return this.#through(method, this.#next(method, ref), call, { unknown });
  }

  count(method: Method, call: () => Promise<Inventory>): Promise<Inventory> {
    return this.#through(method, this.#next(method, undefined), call, { unknown, 'lie-empty': countedNone });
  }

  read<T>(method: Method, ref: OwnerRef, call: () => Promise<T>): Promise<T> {
    return this.#through(method, this.#next(method, ref), call, {});
  }

  async list<T extends { createdAt: number }>(
    method: Method,
    call: () => Promise<Listing<T>>,
  ): Promise<Listing<T>> {
    const fault = this.#next(method, undefined);
    if (typeof fault === 'string' || (fault.kind !== 'part' && fault.kind !== 'lag'))
      return this.#through(method, fault, call, { unknown, 'lie-empty': empty });
    const listing = await call();
    if (listing.answer === 'unknown') return listing;
    if (fault.kind === 'part') return { ...listing, items: listing.items.slice(0, fault.items) };
    const youngest = this.#time(method).now() - fault.ms;
    return { ...listing, items: listing.items.filter(({ createdAt }) => createdAt <= youngest) };
  }

  async step<T>(
    method: Method,
    ref: OwnerRef,
    call: () => Promise<Step<T>>,
    lies: Answers<Step<T>> = {},
  ): Promise<Step<T>> {
    const fault = this.#next(method, ref);
    if (typeof fault === 'string' || fault.kind !== 'misclaim')
      return this.#through(method, fault, call, lies);
    const { code, sideEffect, isDone } = fault;
    if (isDone) await call();
    return { outcome: 'failed', code, sideEffect, detail: `${method} claims that it failed` };
  }

  /** Lets the calls that hang go through. */
  release(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }

  /** What has not come back rejects, and reaches the platform no more. */
  close(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#closed.reject(new InjectedFault('the driver was closed'));
  }

  #next(method: Method, ref: OwnerRef | undefined): Fault {
    const call = { method, ref };
    this.calls.push(call);
    return this.#plan(call);
  }

  async #through<T>(method: Method, fault: Fault, call: () => Promise<T>, answers: Answers<T>): Promise<T> {
    if (typeof fault !== 'string') return this.#inTime(method, fault, call);
    switch (fault) {
      case 'none':
        return call();
      case 'fail-before':
        throw new InjectedFault(`${method} did not reach the platform`);
      case 'fail-after':
        await call();
        throw new InjectedFault(`the answer to ${method} was lost`);
      case 'hang':
        await Promise.race([this.#gate.promise, this.#closed.promise]);
        return call();
    }
    const answer = answers[fault];
    if (answer === undefined) throw unfit(fault, method);
    return answer;
  }

  async #inTime<T>(method: Method, fault: Exclude<Fault, PlainFault>, call: () => Promise<T>): Promise<T> {
    if (fault.kind !== 'delay' && fault.kind !== 'late') throw unfit(fault.kind, method);
    if (fault.kind === 'late') await this.#wait(method, fault.ms);
    const answer = await call();
    if (fault.kind === 'delay') await this.#wait(method, fault.ms);
    return answer;
  }

  async #wait(method: Method, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#time(method).setTimer(ms, resolve);
    this.#timers.add(timer);
    await Promise.race([promise, this.#closed.promise]);
    this.#timers.delete(timer);
  }

  #time(method: Method): Clock {
    if (this.#clock === undefined) throw new TypeError(`a fault of ${method} needs a clock`);
    return this.#clock;
  }
}

function unfit(fault: string, method: Method): TypeError {
  return new TypeError(`the fault ${fault} does not fit ${method}`);
}
