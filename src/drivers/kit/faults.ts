import type {
  Call,
  MachineSpec,
  OwnerRef,
  PlatformDriver,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import { type DriverCall, FaultInjector, type FaultPlan } from '../../platform-model/call-faults.ts';
import type { Clock } from '../../ports/clock.ts';

export interface FaultyDriver extends PlatformDriver {
  /** Every call so far, in order. */
  readonly calls: readonly DriverCall[];
  /** Lets hanging calls go through to the platform. */
  release(): void;
}

/**
 * Wraps the driver so that `plan` injects faults. `close` rejects the calls under way. `clock` is needed for `delay`,
 * `late` and `lag`.
 */
export function withFaults(driver: PlatformDriver, plan: FaultPlan, clock?: Clock): FaultyDriver {
  const injector = new FaultInjector(plan, clock);
  const { volumes } = driver;
  const { inventory, consoleTail, place, disown, writer } = driver;
  return {
    manifest: driver.manifest,
    ...(writer !== undefined && { writer }),
    calls: injector.calls,
    get: (ref) => injector.carry('get', ref, () => driver.get(ref)),
    list: () => injector.carry('list', undefined, () => driver.list()),
    create: (spec, cookie, call) =>
      injector.carry('create', spec.ref, () => driver.create(spec, cookie, call), call?.signal),
    stop: (ref, cookie, call) =>
      injector.carry('stop', ref, () => driver.stop(ref, cookie, call), call?.signal),
    start: (ref, cookie, call) =>
      injector.carry('start', ref, () => driver.start(ref, cookie, call), call?.signal),
    restart: (ref, id, cookie, call) =>
      injector.carry('restart', ref, () => driver.restart(ref, id, cookie, call), call?.signal),
    destroy: (ref, cookie, order, call) =>
      injector.carry('destroy', ref, () => driver.destroy(ref, cookie, order, call), call?.signal),
    ...(disown !== undefined && {
      disown: (ref: OwnerRef, cookie: string | null, call?: Call) =>
        injector.carry('disown', ref, () => disown.call(driver, ref, cookie, call), call?.signal),
    }),
    ...(inventory !== undefined && {
      inventory: (avoidHosts?: readonly string[]) =>
        injector.carry('inventory', undefined, () => inventory.call(driver, avoidHosts)),
    }),
    ...(consoleTail !== undefined && {
      consoleTail: (ref) => injector.carry('consoleTail', ref, () => consoleTail.call(driver, ref)),
    }),
    ...(place !== undefined && {
      place: (spec: MachineSpec, avoid: readonly string[]) => place.call(driver, spec, avoid),
    }),
    ...(volumes !== undefined && { volumes: withVolumeFaults(volumes, injector) }),
    release: () => injector.release(),
    async close() {
      injector.close();
      await driver.close();
    },
  };
}

function withVolumeFaults(volumes: VolumeDriver, injector: FaultInjector): VolumeDriver {
  // `place` and `copy` get no faults here; the simulations inject their own.
  const { place, copy, usage } = volumes;
  return {
    ...(place !== undefined && { place: place.bind(volumes) }),
    ...(copy !== undefined && { copy: copy.bind(volumes) }),
    get: (ref) => injector.carry('volumes.get', ref, () => volumes.get(ref)),
    list: () => injector.carry('volumes.list', undefined, () => volumes.list()),
    ...(usage !== undefined && {
      usage: () => injector.carry('volumes.usage', undefined, () => usage.call(volumes)),
    }),
    create: (spec, cookie, call) =>
      injector.carry('volumes.create', spec.ref, () => volumes.create(spec, cookie, call), call?.signal),
    attach: (ref, machine, cookie, call) =>
      injector.carry('volumes.attach', ref, () => volumes.attach(ref, machine, cookie, call), call?.signal),
    detach: (ref, machine, cookie, call) =>
      injector.carry('volumes.detach', ref, () => volumes.detach(ref, machine, cookie, call), call?.signal),
    resize: (ref, sizeGb, cookie, call) =>
      injector.carry('volumes.resize', ref, () => volumes.resize(ref, sizeGb, cookie, call), call?.signal),
    destroy: (ref, cookie, order, call) =>
      injector.carry('volumes.destroy', ref, () => volumes.destroy(ref, cookie, order, call), call?.signal),
  };
}
