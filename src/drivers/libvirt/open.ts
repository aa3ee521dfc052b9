import type {
  Call,
  DriverManifest,
  OwnerRef,
  PlatformDriver,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { Change } from './change.ts';
import { createMachine } from './create.ts';
import { destroyMachine } from './destroy.ts';
import { disownMachine } from './disown.ts';
import { toFailure } from './errors.ts';
import { openFleet } from './fleet.ts';
import { getMachine, listMachines } from './machines.ts';
import type { LibvirtConfig } from './options.ts';
import { placeOnHosts, readInventory } from './placement.ts';
import type { Platform } from './platform.ts';
import { filesOf, readEnd } from './pool.ts';
import { restartMachine, startMachine, stopMachine } from './power.ts';
import { volumesOf } from './volumes.ts';

const CONSOLE_BYTES = 16 * 1024;
/** The limit that the NoCloud disk is designed for; cloud-init itself accepts more. */
const CLOUD_INIT_BYTES = 1024 * 1024;

export function openLibvirt(
  config: LibvirtConfig,
  { catalog, clock, log, asking }: Pick<DriverSetting, 'catalog' | 'clock' | 'log' | 'asking'>,
): PlatformDriver {
  return driverOf({ fleet: openFleet(config, log, asking), config, catalog, clock, log });
}

export const manifest: DriverManifest = {
  name: 'libvirt',
  stop: true,
  resume: true,
  restart: true,
  attachVolume: 'hot',
  resizeVolume: 'attached',
  createVisibleWithinMs: 0,
  keepsNotes: true,
  fences: true,
  cloudInitBytes: CLOUD_INIT_BYTES,
};

/** Makes the driver for a fleet. */
export function driverOf(platform: Platform): PlatformDriver {
  const { fleet } = platform;
  const alone = <T>(
    ref: OwnerRef,
    call: Call | undefined,
    cookie: string | null,
    task: (change: Change) => Promise<Step<T>>,
  ): Promise<Step<T>> => {
    const change = new Change(platform.clock, `${ref}.machine`, call);
    return fleet.alone(ref, () =>
      task(change).catch((error) => toFailure(error, change.hasChanged || cookie !== null)),
    );
  };
  return {
    manifest,
    get: (ref) => getMachine(platform, ref),
    list: () => listMachines(platform),
    place: (spec, avoidHosts) => placeOnHosts(platform, spec, avoidHosts),
    create: (spec, cookie, call) =>
      alone(spec.ref, call, cookie, (change) => createMachine(platform, change, spec, cookie)),
    stop: (ref, cookie, call) =>
      alone(ref, call, cookie, (change) => stopMachine(platform, change, ref, cookie)),
    start: (ref, cookie, call) => alone(ref, call, cookie, (change) => startMachine(platform, change, ref)),
    restart: (ref, id, cookie, call) =>
      alone(ref, call, cookie, (change) => restartMachine(platform, change, ref, id)),
    destroy: (ref, cookie, order, call) =>
      alone(ref, call, cookie, (change) => destroyMachine(platform, change, ref, order)),
    disown: (ref, cookie, call) => alone(ref, call, cookie, (change) => disownMachine(platform, change, ref)),
    volumes: volumesOf(platform),
    inventory: (avoidHosts) => readInventory(platform, avoidHosts),
    async consoleTail(ref) {
      const search = await fleet.find(ref);
      if (search.answer !== 'found') return undefined;
      return readEnd(search.machine.host, filesOf(ref).console, CONSOLE_BYTES);
    },
    async close() {
      await Promise.all(fleet.hosts.map((host) => host.close()));
    },
  };
}
