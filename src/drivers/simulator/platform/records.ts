import type { MachineRecord } from '../../../platform-model/records.ts';
import type { HostKey } from './host-key.ts';

/** A machine of the simulator: what its guest is made of. */
export interface SimulatedMachine extends MachineRecord {
  /** The `bootedAt` of the boot that what is in memory is of; absent: of none. */
  memoryOf?: number | null;
  /** Whether its SSH server ever listens. */
  sshListens: boolean;
  /** Given at the first boot. */
  sshPort: number | null;
  sshHostKey: HostKey;
  /** When cloud-init is done with the first boot; null: that boot has not ended. */
  cloudInitUntil: number | null;
  /** How many of the runcmd lines have run. */
  runcmdDone: number;
}

export interface StoredFile {
  kind: 'file' | 'directory';
  content: string;
  mode: number;
  user: string;
  group: string;
  modifiedAt: number;
}

/** The name under which a machine's root disk, or a volume, is stored. */
export const rootDisk = (machine: string): string => `machine/${machine}`;
export const volumeDisk = (volume: string): string => `volume/${volume}`;
