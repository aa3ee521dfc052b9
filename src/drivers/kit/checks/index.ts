import { attemptChecks, disownChecks } from './attempts.ts';
import type { DriverCheck } from './check.ts';
import { guestChecks } from './guests.ts';
import { limitChecks } from './limits.ts';
import { capacityChecks, machineChecks } from './machines.ts';
import { placementChecks } from './placement.ts';
import { powerChecks } from './power.ts';
import { volumeChecks } from './volumes.ts';

/** The requirements of the core for every driver. `berth driver test` and `describeDriver` run this table. */
export const driverChecks: readonly DriverCheck[] = [
  ...machineChecks,
  ...powerChecks,
  ...disownChecks,
  ...capacityChecks,
  ...attemptChecks,
  ...placementChecks,
  ...limitChecks,
  ...guestChecks,
  ...volumeChecks,
];
