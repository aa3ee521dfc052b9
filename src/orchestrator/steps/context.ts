import type { VolumeDriver } from '../model/platform-driver.ts';
import type { ReconcileContext } from '../platform/context.ts';

/** What a step of the reconciler uses. */
export interface StepContext extends ReconcileContext {
  /** When this process started: older rows were handled by another one. */
  startedAt: number;
}

/** @throws {Error} if the driver has no volumes. */
export function volumesOf({ driver }: Pick<ReconcileContext, 'driver'>): VolumeDriver {
  if (driver.volumes !== undefined) return driver.volumes;
  throw new Error(
    `there are volumes, and the driver ${driver.manifest.name} has none: configure the driver that made them`,
  );
}
