import type { z } from 'zod';
import type { Fault } from '../fault.ts';
import { answerFaults } from './answer-faults.ts';
import { connectionFaults, tlsFaults } from './connection-faults.ts';
import { machineFaults, sshFaults } from './machine-faults.ts';
import { platformFaults } from './platform-faults.ts';
import { statusFaults } from './status-faults.ts';

/** All faults, from the client's side to the machine's. Of the faults of one exchange, the first is the outermost. */
export const faultCatalog = {
  ...tlsFaults,
  ...connectionFaults,
  ...answerFaults,
  ...statusFaults,
  ...platformFaults,
  ...machineFaults,
  ...sshFaults,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faultCatalog;
export const faultNames = Object.keys(faultCatalog) as [FaultName, ...FaultName[]];

type Input<N extends FaultName> = z.input<(typeof faultCatalog)[N]['params']>;

/**
 * A fault's own settings. The index signature of a fault without any is removed, because it would forbid the shared
 * ones.
 */
export type FaultParams<N extends FaultName> = {
  [Key in keyof Input<N> as string extends Key ? never : Key]: Input<N>[Key];
};
