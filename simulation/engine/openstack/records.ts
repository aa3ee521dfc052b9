import type * as shown from '../../../src/drivers/openstack/api.ts';
import type { Bytes, Content } from '../engine.ts';
import type { Text } from './api.ts';
import type { Compute } from './compute.ts';

/** Nova's power states. */
export const POWER = { none: 0, running: 1, paused: 3, off: 4 } as const;

/** Nova's states, see nova/compute/vm_states.py: what its API calls each, and the power of a server in it. */
export const STATES = {
  building: { status: 'BUILD', power: POWER.none },
  active: { status: 'ACTIVE', power: POWER.running },
  stopped: { status: 'SHUTOFF', power: POWER.off },
  paused: { status: 'PAUSED', power: POWER.paused },
  suspended: { status: 'SUSPENDED', power: POWER.off },
  rescued: { status: 'RESCUE', power: POWER.running },
  resized: { status: 'VERIFY_RESIZE', power: POWER.off },
  shelved: { status: 'SHELVED', power: POWER.off },
  shelved_offloaded: { status: 'SHELVED_OFFLOADED', power: POWER.off },
  'soft-delete': { status: 'SOFT_DELETED', power: POWER.off },
  error: { status: 'ERROR', power: POWER.none },
} as const;
export type VmState = keyof typeof STATES;

export const EMPTY: Content = { guest: undefined, written: [] };

/** Neutron's objects are kept as it shows them. */
export type Port = shown.Port & { project_id: string; security_groups: string[] };
export type FloatingIp = shown.FloatingIp & { project_id: string };

export interface Image {
  id: string;
  name: string;
  project_id: string;
  isPublic: boolean;
  status: 'saving' | 'active';
  createdAt: number;
  /** The id of the server that it is a snapshot of. */
  server?: string;
  /** What a shelved server left in it. */
  bytes?: Bytes | undefined;
}

/** A volume of a server, as Nova has it: its block device mapping. */
export interface Mapping {
  volume: Volume;
  attachment: string;
  isRoot: boolean;
}

export interface Server {
  id: string;
  name: string;
  project_id: string;
  flavor: shown.Flavor;
  image?: string | undefined;
  /** The availability zone that was asked for. */
  zone?: string | undefined;
  host?: Compute | undefined;
  vmState: VmState;
  task: string | null;
  /** As the database has it: Nova notices late that a guest has stopped. The truth is `isRunning`. */
  power: number;
  isRunning: boolean;
  metadata: Text;
  tags: string[];
  userData: string;
  /** The ids of the ports that were asked for. */
  ports: string[];
  createdAt: number;
  updatedAt: number;
  launchedAt?: number | undefined;
  fault?: string | undefined;
  isLocked: boolean;
  mappings: Mapping[];
  isVolumeBacked: boolean;
  /** Its disk on its host; undefined: it boots from a volume, or is not on a host. */
  disk?: Bytes | undefined;
  /** The snapshot that it is unshelved from. */
  snapshot?: Image | undefined;
  /** Since a migration that is not confirmed. */
  before?: { host: Compute | undefined; vmState: VmState } | undefined;
  /** What Nova does with it now. */
  work?: { transition: Transition } | undefined;
  /** A person has made it from another. */
  isCopy: boolean;
}

export interface Volume {
  id: string;
  name: string;
  project_id: string;
  /** In GiB. */
  size: number;
  status: string;
  metadata: Text;
  createdAt: number;
  /** A server that is off its host has reserved its volumes. */
  attachments: { id: string; server: string; isAttached: boolean }[];
  bytes: Bytes;
}

/** A task at a server's host, how long it may take, and what it does at its end: `false` ends the work there. */
export type Phase = readonly [task: string | null, longMs: number, ends?: (server: Server) => unknown];

/** What Nova does with a server in one go. */
export interface Transition {
  name: string;
  /** The states in which an action may ask for it. Default: none. */
  from?: readonly VmState[];
  phases: readonly Phase[];
  /** Default: the state does not change. */
  to?: VmState;
  /** Whether a nova-compute that ends and starts again begins with it again. Default: it hangs. */
  isTakenUp?: boolean;
  /** What a failure leaves. */
  failed?: (server: Server) => unknown;
}
