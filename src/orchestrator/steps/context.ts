import type { VolumeDriver } from '../model/platform-driver.ts';
import type { Calling, Recording } from '../platform/context.ts';

/** Dependencies of the reconciler's steps. */
export interface StepContext extends Recording, Calling {
  /** When this process started, in milliseconds since the epoch. An earlier process handled older rows. */
  startedAt: number;
  /** The last placement on the platform by this process: see `alone`. */
  placements: { last: Promise<void> };
}

/** @throws {Error} if the driver has no volumes. */
export function volumesOf({ driver }: Pick<Calling, 'driver'>): VolumeDriver {
  if (driver.volumes !== undefined) return driver.volumes;
  throw new Error(
    `volumes exist, but the driver ${driver.manifest.name} does not support them: configure the driver that made them`,
  );
}
