import type {
  Listing,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../orchestrator/ports/platform-driver.ts';

/**
 * `fail-before`: the call rejects, nothing was done · `fail-after`: the call is done, its answer is
 * lost · `hang`: no answer, and nothing done, until `release()`; then the call goes through, late ·
 * `unknown`: a look answers unknown · `lie-empty`: a listing is empty · `lie-done`: a destroy says done
 * and does nothing.
 */
export type Fault = 'none' | 'fail-before' | 'fail-after' | 'hang' | 'unknown' | 'lie-empty' | 'lie-done';

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

type Lies<T> = Partial<Record<'unknown' | 'lie-empty' | 'lie-done', T>>;
type Through = <T>(
  method: DriverCall['method'],
  ref: OwnerRef | undefined,
  call: () => Promise<T>,
  lies?: Lies<NoInfer<T>>,
) => Promise<T>;

const unknown = { answer: 'unknown', reason: 'injected fault' } as const;
const listingLies: Lies<Listing<never>> = { unknown, 'lie-empty': { answer: 'listed', items: [] } };
const destroyLies: Lies<Step<null>> = { 'lie-done': { outcome: 'done', value: null } };

/** The driver with faults injected as `plan` says. `close` rejects what still hangs. */
export function withFaults(driver: PlatformDriver, plan: FaultPlan): FaultyDriver {
  const calls: DriverCall[] = [];
  let gate = Promise.withResolvers<void>();
  gate.promise.catch(() => {});

  const through: Through = async (method, ref, call, lies = {}) => {
    calls.push({ method, ref });
    const fault = plan({ method, ref });
    if (fault === 'fail-before') throw new InjectedFault(`${method} did not reach the platform`);
    if (fault === 'hang') await gate.promise;
    if (fault === 'none' || fault === 'hang' || fault === 'fail-after') {
      const answer = await call();
      if (fault === 'fail-after') throw new InjectedFault(`the answer to ${method} was lost`);
      return answer;
    }
    const lie = lies[fault];
    if (lie === undefined) throw new TypeError(`the fault ${fault} does not fit ${method}`);
    return lie;
  };

  return {
    manifest: driver.manifest,
    calls,
    get: (ref) => through('get', ref, () => driver.get(ref), { unknown }),
    list: () => through('list', undefined, () => driver.list(), listingLies),
    create: (spec, cookie) => through('create', spec.ref, () => driver.create(spec, cookie)),
    stop: (ref, cookie) => through('stop', ref, () => driver.stop(ref, cookie)),
    start: (ref, cookie) => through('start', ref, () => driver.start(ref, cookie)),
    destroy: (ref, cookie) => through('destroy', ref, () => driver.destroy(ref, cookie), destroyLies),
    ...(driver.volumes !== undefined && { volumes: withVolumeFaults(driver.volumes, through) }),
    release() {
      gate.resolve();
      gate = Promise.withResolvers();
      gate.promise.catch(() => {});
    },
    async close() {
      gate.reject(new InjectedFault('the driver was closed'));
      await driver.close();
    },
  };
}

function withVolumeFaults(volumes: VolumeDriver, through: Through): VolumeDriver {
  return {
    get: (ref) => through('volumes.get', ref, () => volumes.get(ref), { unknown }),
    list: () => through('volumes.list', undefined, () => volumes.list(), listingLies),
    create: (spec, cookie) => through('volumes.create', spec.ref, () => volumes.create(spec, cookie)),
    attach: (ref, machine, cookie) =>
      through('volumes.attach', ref, () => volumes.attach(ref, machine, cookie)),
    detach: (ref, machine, cookie) =>
      through('volumes.detach', ref, () => volumes.detach(ref, machine, cookie)),
    destroy: (ref, cookie) =>
      through('volumes.destroy', ref, () => volumes.destroy(ref, cookie), destroyLies),
  };
}
