import { isDeepStrictEqual } from 'node:util';
import { recordedOrder } from '../../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  FailureCode,
  MachineSpec,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  PlatformDriver,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';
import { withCalls } from './with-calls.ts';

/** What a driver's platform must offer to its checks. What is optional and absent leaves checks untried, by name. */
export interface DriverContext {
  driver: PlatformDriver;
  /** A machine that fits on the platform; `ref` is fresh each time. */
  machineSpec: (ref: OwnerRef) => MachineSpec;
  volumeSpec: (ref: OwnerRef) => VolumeSpec;
  /** How many machines of `machineSpec` the platform holds at once; undefined: more than can be tried. */
  units: number | undefined;
  /** Lets the platform's time pass. */
  wait: (ms: number) => Promise<void>;
  /** The platform's time, in milliseconds since the epoch. */
  now: () => number;
  /** How long one step may take, and what a guest does by itself, in the milliseconds of `wait`. Default: ten minutes. */
  patienceMs?: number;
  /** What the refs of the checks begin with; other machines of ours may be there. Default: `suite`. */
  prefix?: string;
  guest?: {
    /** Offers each key to the machine's endpoint: which one it refuses, or undefined. */
    findRefusedKey: (machine: ObservedMachine, sshKeys: readonly string[]) => Promise<string | undefined>;
    /** Runs a line in the machine's shell, as its login user; what it printed. @throws if it cannot, or the line fails */
    run?: (machine: ObservedMachine, line: string) => Promise<string>;
    /** Writes and reads a text on a volume, inside a machine that it is attached to. */
    volume?: {
      write: (machine: ObservedMachine, volume: OwnerRef, text: string) => Promise<void>;
      read: (machine: ObservedMachine, volume: OwnerRef) => Promise<string>;
    };
  };
  /** What makes a create impossible, by the code that it must be refused with. */
  impossible?: Partial<Record<FailureCode, Partial<MachineSpec>>>;
  /**
   * Removes what is on the platform of a machine that was released, as the operator who has it now would. The disks that were
   * there; undefined: they cannot be seen.
   */
  removeReleased?: (ref: OwnerRef) => Promise<readonly string[] | undefined>;
  /** The driver opened once more on the same platform, as after a crash. */
  reopen?: () => Promise<PlatformDriver>;
  /** The driver opened on a platform that does not answer. */
  openUnreachable?: () => Promise<PlatformDriver>;
}

/** A check removes what it made itself: whoever runs the checks has asked for that, and no database is there. */
export const TRIAL_ORDER = recordedOrder({ reason: 'operator', by: 'berth driver test', at: 0 });

const DEFAULT_PATIENCE_MS = 10 * 60_000;
const MAX_POLLS = 5_000;
const LOOK_AGAIN_MS = 1_000;
/** As long as the core gives a call at most. */
const CALL_MS = 20_000;

type Repeated<T> = (cookie: string | null) => Promise<Step<T>>;

/** What a check finds wrong: a sentence for whoever wrote the driver. */
export class CheckFailure extends Error {
  override readonly name = 'CheckFailure';
}

/** The platform of one check: repeats steps as the core does, and knows what the check has made. */
export class Bench {
  /** Checks may follow one another on one platform, with the same refs: no claim of this process is lower than one before. */
  static #fence = 0;
  readonly context: DriverContext;
  /** Each call that changes something has limits, as those of the core have. */
  readonly driver: PlatformDriver;
  readonly #used = new Set<OwnerRef>();
  readonly #usedVolumes = new Set<OwnerRef>();
  readonly #patienceMs: number;

  constructor(context: DriverContext) {
    this.context = context;
    this.driver = this.limited(context.driver);
    this.#patienceMs = context.patienceMs ?? DEFAULT_PATIENCE_MS;
  }

  get manifest(): PlatformDriver['manifest'] {
    return this.driver.manifest;
  }

  ref(name: string): OwnerRef {
    const ref = `${this.context.prefix ?? 'suite'}-${name}`;
    this.#used.add(ref);
    return ref;
  }

  volumeRef(name: string): OwnerRef {
    const ref = `${this.context.prefix ?? 'suite'}-${name}`;
    this.#usedVolumes.add(ref);
    return ref;
  }

  /** The limits of a call, of a later claim than all before. */
  call(changed: Partial<Call> = {}): Call {
    const { now } = this.context;
    Bench.#fence = Math.max(Bench.#fence + 1, now());
    const { signal } = new AbortController();
    return { deadline: now() + CALL_MS, fence: Bench.#fence, signal, ...changed };
  }

  /** Another driver of the same platform, with limits as `driver` has them. */
  limited(driver: PlatformDriver): PlatformDriver {
    return withCalls(driver, () => this.call());
  }

  /** Whether the driver says that it compares the fences of calls. */
  get fences(): boolean {
    return this.manifest.fences === true;
  }

  spec(ref: OwnerRef, overrides: Partial<MachineSpec> = {}): MachineSpec {
    return { ...this.context.machineSpec(ref), ...overrides };
  }

  create(ref: OwnerRef, overrides: Partial<MachineSpec> = {}): Promise<ObservedMachine> {
    const spec = this.spec(ref, overrides);
    return this.finish('create', (cookie) => this.driver.create(spec, cookie));
  }

  stop(ref: OwnerRef): Promise<ObservedMachine> {
    return this.finish('stop', (cookie) => this.driver.stop(ref, cookie));
  }

  start(ref: OwnerRef): Promise<ObservedMachine> {
    return this.finish('start', (cookie) => this.driver.start(ref, cookie));
  }

  destroy(ref: OwnerRef): Promise<null> {
    return this.finish('destroy', (cookie) => this.driver.destroy(ref, cookie, TRIAL_ORDER));
  }

  createVolume(
    volumes: VolumeDriver,
    ref: OwnerRef,
    overrides: Partial<VolumeSpec> = {},
  ): Promise<ObservedVolume> {
    const spec = { ...this.context.volumeSpec(ref), ...overrides };
    return this.finish('volumes.create', (cookie) => volumes.create(spec, cookie));
  }

  destroyVolume(volumes: VolumeDriver, ref: OwnerRef): Promise<null> {
    return this.finish('volumes.destroy', (cookie) => volumes.destroy(ref, cookie, TRIAL_ORDER));
  }

  /** Repeats a step, as the core does, until it is done. @throws {CheckFailure} if it fails or never ends. */
  async finish<T>(what: string, call: Repeated<T>): Promise<T> {
    let cookie: string | null = null;
    let waitedMs = 0;
    for (let poll = 0; poll < MAX_POLLS && waitedMs <= this.#patienceMs; poll++) {
      const step = await call(cookie);
      if (step.outcome === 'done') return step.value;
      if (step.outcome === 'failed')
        throw new CheckFailure(
          `${what} failed with ${step.code} (side effect: ${step.sideEffect}): ${step.detail}`,
        );
      if (!(step.pollAfterMs > 0))
        throw new CheckFailure(`${what} is pending with pollAfterMs ${step.pollAfterMs}`);
      // It is kept in the database as it is.
      if (!/^\P{Cc}{1,1000}$/u.test(step.cookie))
        throw new CheckFailure(
          `${what} gave the cookie ${show(step.cookie)}: expected 1 to 1000 characters without control characters`,
        );
      cookie = step.cookie;
      waitedMs += step.pollAfterMs;
      await this.context.wait(step.pollAfterMs);
    }
    throw new CheckFailure(`${what} is still pending after ${Math.round(waitedMs / 1000)} s`);
  }

  /** Repeats a step from its beginning, as the core does after a crash: of the first call nothing is known. */
  async finishAfterCrash<T>(what: string, call: Repeated<T>): Promise<T> {
    await call(null);
    return this.finish(`${what}, begun anew after a crash,`, call);
  }

  /** Looks until it is there: at once, but for what the manifest lets the platform hide. */
  async untilShown<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const { createVisibleWithinMs } = this.manifest;
    const found = await this.#until(createVisibleWithinMs, look);
    if (found !== undefined) return found;
    throw new CheckFailure(`${what} is not shown within createVisibleWithinMs (${createVisibleWithinMs} ms)`);
  }

  /** Looks until it is so, for as long as a guest may take. @throws {CheckFailure} with what was wrong last */
  async eventually(what: string, findProblem: () => Promise<string | undefined>): Promise<void> {
    let problem: string | undefined;
    const isSo = await this.#until(this.#patienceMs, async () => {
      problem = await findProblem().catch((error: unknown) => String(error));
      return problem === undefined ? true : undefined;
    });
    if (isSo === undefined) throw new CheckFailure(`${what}: ${problem}`);
  }

  /** Of what the check made, what is listed, in order. */
  async listed(): Promise<OwnerRef[]> {
    const listing = await this.driver.list();
    if (listing.answer === 'unknown') throw new CheckFailure(`list answers unknown: ${listing.reason}`);
    return listing.items
      .map(({ ref }) => ref)
      .filter((ref) => this.#used.has(ref))
      .sort();
  }

  async listedVolumes(volumes: VolumeDriver): Promise<ObservedVolume[]> {
    const listing = await volumes.list();
    if (listing.answer === 'unknown')
      throw new CheckFailure(`volumes.list answers unknown: ${listing.reason}`);
    return listing.items.filter(({ ref }) => this.#usedVolumes.has(ref));
  }

  /** Removes what the check has left. @throws if something stays. */
  async cleanUp(): Promise<void> {
    for (const ref of this.#used) await this.destroy(ref);
    const { volumes } = this.driver;
    if (volumes === undefined) return;
    for (const ref of this.#usedVolumes) await this.destroyVolume(volumes, ref);
  }

  async #until<T>(withinMs: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
    for (let waitedMs = 0; ; waitedMs += LOOK_AGAIN_MS) {
      const found = await look();
      if (found !== undefined || waitedMs >= withinMs) return found;
      await this.context.wait(LOOK_AGAIN_MS);
    }
  }
}

export function show(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}

/** @throws {CheckFailure} unless `value` is the same as `expected`. */
export function same(what: string, value: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(value, expected))
    throw new CheckFailure(`${what}: expected ${show(expected)}, got ${show(value)}`);
}

/** @throws {CheckFailure} unless it is proved gone. */
export function gone(what: string, presence: Presence<unknown>): void {
  if (presence.answer === 'unknown')
    throw new CheckFailure(`${what}: expected "gone", got "unknown": ${presence.reason}`);
  same(what, presence.answer, 'gone');
}

/** @throws {CheckFailure} unless `value` has each of these fields, as they are given. */
export function has<T extends object>(
  what: string,
  value: T,
  expected: { [Name in keyof T]?: T[Name] | undefined },
): void {
  const wrong = Object.entries(expected).filter(
    ([name, field]) => !isDeepStrictEqual(value[name as keyof T], field),
  );
  if (wrong.length > 0)
    throw new CheckFailure(`${what}: expected ${show(Object.fromEntries(wrong))}, got ${show(value)}`);
}

/** @throws {CheckFailure} unless the step failed with one of the codes, having changed nothing. */
export function refused(what: string, step: Step<unknown>, ...codes: FailureCode[]): void {
  const isRefused =
    step.outcome === 'failed' &&
    step.sideEffect === 'none' &&
    (codes.length === 0 || codes.includes(step.code)) &&
    step.detail.length > 0;
  if (!isRefused) {
    const code = codes.length === 0 ? 'a code' : codes.join(' or ');
    throw new CheckFailure(
      `${what}: expected it to fail with ${code}, sideEffect none and a detail, got ${show(step)}`,
    );
  }
}
