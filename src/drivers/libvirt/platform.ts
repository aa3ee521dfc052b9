import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  Call,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type * as port from '../kit/method.ts';
import { Change } from './change.ts';
import { toFailure } from './errors.ts';
import type { Fleet } from './fleet.ts';
import type { LibvirtConfig } from './options.ts';
import type { VolumeReader } from './volume-reader.ts';

export interface Platform {
  fleet: Fleet;
  config: LibvirtConfig;
  catalog: Catalog;
  clock: Clock;
  log: Log;
  volumes: VolumeReader;
}

/** The platform in one call that changes something. */
export interface ChangingPlatform extends Platform {
  change: Change;
}

export type MachineMethod<Name extends keyof PlatformDriver> = port.MachineMethod<ChangingPlatform, Name>;
export type VolumeMethod<Name extends keyof VolumeDriver> = port.VolumeMethod<ChangingPlatform, Name>;

/** Runs a change of a machine or a volume, one at a time in this process, and classifies its failure. */
export const changing =
  (platform: Platform, kind: 'machine' | 'volume') =>
  <T>(
    ref: OwnerRef,
    cookie: string | null,
    call: Call | undefined,
    task: (platform: ChangingPlatform) => Promise<Step<T>>,
  ): Promise<Step<T>> => {
    const change = new Change(platform.clock, `${ref}.${kind}`, call);
    return platform.fleet.alone(kind === 'machine' ? ref : `volume ${ref}`, () =>
      task({ ...platform, change }).catch((error) => toFailure(error, change.hasChanged || cookie !== null)),
    );
  };
