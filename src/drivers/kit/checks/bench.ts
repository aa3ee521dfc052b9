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
  Progress,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';
import { cleanText } from '../../../orchestrator/model/platform-resource.ts';
import { withCalls } from '../around-calls.ts';

/** The platform and the access that checks need. A check that needs an absent option is reported as untried. */
export interface DriverContext {
  driver: PlatformDriver;
  /** The spec of a machine that fits on the platform; `ref` is new each time. */
  machineSpec: (ref: OwnerRef) => MachineSpec;
  volumeSpec: (ref: OwnerRef) => VolumeSpec;
  /** How many machines of `machineSpec` the platform can hold. Undefined if there are too many to try. */
  units: number | undefined;
  /** Waits in the platform's time. */
  wait: (ms: number) => Promise<void>;
  /** The platform's time, in milliseconds since the epoch. */
  now: () => number;
  /** Limit for one step and for changes that the guest makes, in milliseconds of `wait`. Default: ten minutes. */
  patienceMs?: number;
  /** Prefix of the refs that the checks use; the platform may have other machines. Default: `suite`. */
  prefix?: string;
  guest?: {
    /** Offers each key to the machine's endpoint; returns the refused one, or undefined. */
    findRefusedKey: (machine: ObservedMachine, sshKeys: readonly string[]) => Promise<string | undefined>;
    /** Runs a line in the login user's shell and returns its output. @throws if the login or the line fails */
    run?: (machine: ObservedMachine, line: string) => Promise<string>;
    /** Writes and reads a text on a volume, from a machine that it is attached to. */
    volume?: {
      write: (machine: ObservedMachine, volume: OwnerRef, text: string) => Promise<void>;
      read: (machine: ObservedMachine, volume: OwnerRef) => Promise<string>;
    };
  };
  /** Spec changes that make a create impossible, by the code with which the driver must refuse them. */
  impossible?: Partial<Record<FailureCode, Partial<MachineSpec>>>;
  /**
   * Removes from the platform what belongs to a released machine, as its new owner would. Returns the disks that were
   * there. Undefined if they cannot be listed.
   */
  removeReleased?: (ref: OwnerRef) => Promise<readonly string[] | undefined>;
  /** Opens the driver once more on the same platform, as after a crash. */
  reopen?: () => Promise<PlatformDriver>;
  /** Opens the driver on a platform that does not answer. */
  openUnreachable?: () => Promise<PlatformDriver>;
}

/**
 * The removal order for a check's own machines. The operator has asked for it by running the checks; there is no
 * database.
 */
export const TRIAL_ORDER = recordedOrder({ reason: 'operator', by: 'berth driver test', at: 0 });

const DEFAULT_PATIENCE_MS = 10 * 60_000;
const MAX_POLLS = 5_000;
const LOOK_AGAIN_MS = 1_000;
/** No phase of a platform takes longer, in milliseconds. */
const LONGEST_PHASE_MS = 30 * 24 * 60 * 60_000;
/** The longest limit that the core gives a call. */
const CALL_MS = 20_000;

type Repeated<T> = (cookie: string | null) => Promise<Step<T>>;

export class CheckFailure extends Error {
  override readonly name = 'CheckFailure';
}

/** Thrown if the context does not have what the check needs. */
export class Untried extends Error {
  override readonly name = 'Untried';
}

/** The platform of one check. Repeats steps as the core does, and records the resources that the check makes. */
export class Bench {
  /** Shared by all checks: they may run on one platform with the same refs, so the fence must never decrease. */
  static #fence = 0;
  readonly context: DriverContext;
  /** Adds limits, as the core does, to each call that changes something. */
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

  /** Limits of a call whose fence is higher than all before. */
  call(changed: Partial<Call> = {}): Call {
    const { now } = this.context;
    Bench.#fence = Math.max(Bench.#fence + 1, now());
    const { signal } = new AbortController();
    return { deadline: now() + CALL_MS, fence: Bench.#fence, signal, ...changed };
  }

  limited(driver: PlatformDriver): PlatformDriver {
    return withCalls(driver, () => this.call());
  }

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

  /** Repeats a step, as the core does, until it is done. @throws {CheckFailure} if it fails or never ends */
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
      // The core stores the cookie unchanged.
      if (!/^\P{Cc}{1,1000}$/u.test(step.cookie))
        throw new CheckFailure(
          `${what} gave the cookie ${show(step.cookie)}: expected 1 to 1000 characters without control characters`,
        );
      this.#checkProgress(what, step.progress);
      cookie = step.cookie;
      waitedMs += step.pollAfterMs;
      await this.context.wait(step.pollAfterMs);
    }
    throw new CheckFailure(`${what} is still pending after ${Math.round(waitedMs / 1000)} s`);
  }

  /** A deadline in other units, such as seconds, would raise an alarm at each call, or never. */
  #checkProgress(what: string, progress: Progress | undefined): void {
    if (progress === undefined) return;
    const { phase, deadlineAt } = progress;
    if (phase === '' || cleanText(phase) !== phase)
      throw new CheckFailure(`${what} gave the phase ${show(phase)}: expected some words on one line`);
    if (deadlineAt !== undefined && Math.abs(deadlineAt - this.context.now()) > LONGEST_PHASE_MS)
      throw new CheckFailure(
        `${what} gave ${deadlineAt} as the deadline of “${phase}”: expected milliseconds since the epoch`,
      );
  }

  /** Repeats a step from its beginning, as the core does after a crash that lost the first answer. */
  async finishAfterCrash<T>(what: string, call: Repeated<T>): Promise<T> {
    await call(null);
    return this.finish(`${what}, repeated after a crash,`, call);
  }

  /** Polls until the resource is shown, for at most the manifest's `createVisibleWithinMs`. */
  async untilShown<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const { createVisibleWithinMs } = this.manifest;
    const found = await this.#until(createVisibleWithinMs, look);
    if (found !== undefined) return found;
    throw new CheckFailure(
      `${what} is not visible within createVisibleWithinMs (${createVisibleWithinMs} ms)`,
    );
  }

  /** Polls until there is no problem, within `patienceMs`. @throws {CheckFailure} with the last problem */
  async eventually(what: string, findProblem: () => Promise<string | undefined>): Promise<void> {
    let problem: string | undefined;
    const isSo = await this.#until(this.#patienceMs, async () => {
      problem = await findProblem().catch((error: unknown) => String(error));
      return problem === undefined ? true : undefined;
    });
    if (isSo === undefined) throw new CheckFailure(`${what}: ${problem}`);
  }

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

  /** Removes what the check has made. @throws if a resource cannot be removed */
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

/** @throws {CheckFailure} unless `value` equals `expected` */
export function same(what: string, value: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(value, expected))
    throw new CheckFailure(`${what}: expected ${show(expected)}, got ${show(value)}`);
}

/** @throws {CheckFailure} unless the answer is `gone` */
export function gone(what: string, presence: Presence<unknown>): void {
  if (presence.answer === 'unknown')
    throw new CheckFailure(`${what}: expected "gone", got "unknown": ${presence.reason}`);
  same(what, presence.answer, 'gone');
}

/** @throws {CheckFailure} unless `value` has each of these fields with the expected value */
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

/** @throws {CheckFailure} unless the step failed with one of the codes and no side effect */
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
