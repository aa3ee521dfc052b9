import type { z } from 'zod';
import type { Fault } from '../fault.ts';
import { answerFaults } from './answer-faults.ts';
import { connectionFaults } from './connection-faults.ts';
import { machineFaults } from './machine-faults.ts';
import { platformFaults } from './platform-faults.ts';
import { sshFaults } from './ssh-faults.ts';
import { statusFaults } from './status-faults.ts';

/** Every fault, from the client's side to the machine's: of an exchange the first is the outermost. */
export const faultCatalog = {
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

/** The settings that one fault has, and others do not. One without any has no index signature, which would forbid all others. */
export type FaultParams<N extends FaultName> = {
  [Key in keyof Input<N> as string extends Key ? never : Key]: Input<N>[Key];
};
