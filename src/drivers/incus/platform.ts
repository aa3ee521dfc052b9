import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Call, PlatformDriver, VolumeDriver } from '../../orchestrator/model/platform-driver.ts';
import type * as port from '../kit/method.ts';
import { createTurns } from '../kit/turns.ts';
import type { IncusApi } from './api.ts';
import { FleetReader } from './fleet.ts';
import { Forwards } from './forwards.ts';
import { InstanceReader } from './instances.ts';
import type { IncusConfig } from './options.ts';

export interface Platform {
  api: IncusApi;
  options: IncusConfig;
  catalog: Catalog;
  instances: InstanceReader;
  fleet: FleetReader;
  /** Undefined if machines are reached at their own address. */
  forwards: Forwards | undefined;
  /** Serialises calls that read the fleet and then take capacity from it. */
  alone: <T>(call: () => Promise<T>) => Promise<T>;
  wait: (ms: number) => Promise<void>;
  /** The limits of the driver's call that makes the change. Absent for a read, or when a person tries the driver. */
  call?: Call | undefined;
}

export type MachineMethod<Name extends keyof PlatformDriver> = port.MachineMethod<Platform, Name>;
export type VolumeMethod<Name extends keyof VolumeDriver> = port.VolumeMethod<Platform, Name>;

export function platformOf(
  api: IncusApi,
  options: IncusConfig,
  catalog: Catalog,
  now: () => number,
): Platform {
  const instances = new InstanceReader(api);
  const turns = createTurns();
  return {
    api,
    options,
    catalog,
    instances,
    fleet: new FleetReader({ api, instances }, options, catalog, now),
    forwards: options.port_forwards && new Forwards(api, options.port_forwards),
    alone: (call) => turns('capacity', call),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
}
