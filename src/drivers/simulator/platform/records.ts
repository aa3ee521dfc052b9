import type { MachineRecord } from '../../../platform-model/records.ts';
import type { HostKey } from '../../kit/host-key.ts';

export interface SimulatedMachine extends MachineRecord {
  /** Whether its SSH server ever listens. */
  sshListens: boolean;
  /** Assigned at the first boot. */
  sshPort: number | null;
  sshHostKey: Pick<HostKey, 'privateKey' | 'fingerprint'>;
  /** When cloud-init finishes the first boot. Null if that boot has not completed. */
  cloudInitUntil: number | null;
  runcmdDone: number;
}

/** The storage name of a machine's root disk. */
export const rootDisk = (machine: string): string => `machine/${machine}`;
export const volumeDisk = (volume: string): string => `volume/${volume}`;
