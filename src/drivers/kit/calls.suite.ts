import { expect } from 'vitest';
import type {
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';

/** What a driver's platform must offer to the suite. */
export interface DriverSuiteContext {
  driver: PlatformDriver;
  /** A machine that fits on the platform; `ref` is fresh each time. */
  machineSpec: (ref: OwnerRef) => MachineSpec;
  volumeSpec: (ref: OwnerRef) => VolumeSpec;
  /** How many machines of `machineSpec` the platform holds at once. */
  units: number;
  /** Lets the platform's time pass. */
  wait: (ms: number) => Promise<void>;
}

const MAX_POLLS = 200;
/** What a platform may trip over: quotes, braces, and more than one byte to a character. */
export const NOTE = JSON.stringify({
  name: 'a "note" of {ours} <&>',
  city: 'Köln 東京',
  filler: 'x'.repeat(4_000),
});

/** Repeats a step, as the core does, until it is done. @throws if it fails. */
export async function finish<T>(
  { wait }: DriverSuiteContext,
  call: (cookie: string | null) => Promise<Step<T>>,
): Promise<T> {
  let cookie: string | null = null;
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const step = await call(cookie);
    if (step.outcome === 'done') return step.value;
    if (step.outcome === 'failed') throw new Error(`${step.code}: ${step.detail}`);
    expect(step.pollAfterMs).toBeGreaterThan(0);
    // It is kept in the database as it is.
    expect(step.cookie).toMatch(/^\P{Cc}{1,1000}$/u);
    cookie = step.cookie;
    await wait(step.pollAfterMs);
  }
  throw new Error('the step never ended');
}

/** Repeats a step from its beginning, as the core does after a crash: of the first call nothing is known. */
export async function finishAfterCrash<T>(
  context: DriverSuiteContext,
  call: (cookie: string | null) => Promise<Step<T>>,
): Promise<T> {
  await call(null);
  return finish(context, call);
}

export function create(context: DriverSuiteContext, ref: OwnerRef): Promise<ObservedMachine> {
  return finish(context, (cookie) => context.driver.create(context.machineSpec(ref), cookie));
}

export function destroy(context: DriverSuiteContext, ref: OwnerRef): Promise<null> {
  return finish(context, (cookie) => context.driver.destroy(ref, cookie));
}

export async function refsOf({ driver }: DriverSuiteContext): Promise<OwnerRef[]> {
  const listing = await driver.list();
  if (listing.answer === 'unknown') throw new Error(listing.reason);
  return listing.items.map((item) => item.ref).sort();
}
