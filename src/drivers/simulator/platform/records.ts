import type {
  MachineSpec,
  OwnerRef,
  Power,
  VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';
import type { HostKey } from './host-key.ts';

/** A machine as the platform keeps it. What it is now follows from it and the time, see lifecycle.ts. */
export interface MachineRecord {
  spec: MachineSpec;
  /** Counts up over all machines; the private address is made from it. */
  number: number;
  createdAt: number;
  power: Power;
  /** When `power` ends by itself; null: never. */
  until: number | null;
  /** Whether the boot under way will fail. */
  bootFails: boolean;
  /** Whether its SSH server ever listens. */
  sshListens: boolean;
  /** Whether it occupies a unit of its offer. */
  holdsUnit: boolean;
  /** When the guest is up; in the future while it reboots. */
  bootedAt: number | null;
  /** The `bootedAt` of the boot that what is in memory is of; absent: of none. */
  memoryOf?: number | null;
  /** Boots so far: names the draws. */
  boots: number;
  /** The last restart that was ordered; absent: none was. */
  restartId?: string;
  /** When the platform takes the running machine away; null: never. */
  reclaimAt: number | null;
  /** Given at the first boot. */
  sshPort: number | null;
  sshHostKey: HostKey;
  /** When cloud-init is done with the first boot; null: that boot has not ended. */
  cloudInitUntil: number | null;
  /** How many of the runcmd lines have run. */
  runcmdDone: number;
}

export interface VolumeRecord {
  spec: VolumeSpec;
  createdAt: number;
  state: 'creating' | 'available' | 'resizing' | 'destroying';
  until: number | null;
  /** What it grows to while it is `resizing`. */
  nextSizeGb?: number;
}

export interface AttachmentRecord {
  volume: OwnerRef;
  machine: OwnerRef;
  state: 'attaching' | 'attached' | 'detaching';
  until: number | null;
}

export interface StoredFile {
  kind: 'file' | 'directory';
  content: string;
  mode: number;
  user: string;
  group: string;
  modifiedAt: number;
}
