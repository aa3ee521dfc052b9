import type { Content } from '../engine.ts';
import type { Compute } from './compute.ts';

/** What a disk, a volume or a snapshot holds. */
export interface Bytes {
  content: Content;
}

export type Text = Record<string, string>;

export interface Flavor {
  id: string;
  name: string;
  vcpus: number;
  /** In MiB. */
  ram: number;
  /** In GiB. */
  disk: number;
  extraSpecs: Text;
}

export interface Image {
  id: string;
  name: string;
  project: string;
  isPublic: boolean;
  status: 'queued' | 'saving' | 'active';
  minDisk: number;
  createdAt: number;
  properties: Text;
  /** What a shelved server left in it. */
  bytes: Bytes | undefined;
}

export interface Network {
  id: string;
  name: string;
  isExternal: boolean;
  /** The first three numbers of its addresses. */
  prefix: string;
  /** How many addresses it has. */
  size: number;
  subnet: string;
}

/** Nova's own words, see nova/compute/vm_states.py. */
export type VmState =
  | 'building'
  | 'active'
  | 'stopped'
  | 'paused'
  | 'suspended'
  | 'rescued'
  | 'resized'
  | 'shelved'
  | 'shelved_offloaded'
  | 'soft-delete'
  | 'error';

/** Nova's power states. */
export const POWER = { none: 0, running: 1, paused: 3, off: 4, suspended: 7 } as const;

/** A volume of a server, as Nova has it: its block device mapping. */
export interface Mapping {
  volume: Volume;
  attachment: string;
  device: string;
  deleteOnTermination: boolean;
  isRoot: boolean;
}

export interface Server {
  id: string;
  name: string;
  project: string;
  user: string;
  flavor: Flavor;
  image: string | undefined;
  /** The availability zone that was asked for. */
  zone: string | undefined;
  host: Compute | undefined;
  vmState: VmState;
  taskState: string | null;
  /** As the database has it; the truth is `isRunning`. */
  power: number;
  isRunning: boolean;
  metadata: Text;
  tags: string[];
  userData: string;
  keyName: string | null;
  configDrive: string;
  description: string | null;
  securityGroups: string[];
  /** Networks and ports that were asked for. */
  networks: { uuid?: string; port?: string }[];
  createdAt: number;
  updatedAt: number;
  launchedAt: number | undefined;
  fault: { code: number; message: string; at: number } | undefined;
  isLocked: boolean;
  mappings: Mapping[];
  /** Its disk on its host; undefined: it boots from a volume, or is not on a host. */
  disk: Bytes | undefined;
  isVolumeBacked: boolean;
  /** The snapshot that it is unshelved from. */
  shelvedImage: string | undefined;
  /** Since a resize or a migration that is not confirmed. */
  before: { host: Compute; flavor: Flavor; vmState: VmState } | undefined;
  /** What was done with it, oldest first. */
  actions: { action: string; at: number; hasFailed: boolean }[];
  /** What Nova does with it now. */
  work: object | undefined;
  /** A person has made it from another. */
  isCopy: boolean;
}

export interface Attachment {
  id: string;
  server: string;
  device: string;
  host: string | null;
  at: number;
  isAttached: boolean;
}

export interface Volume {
  id: string;
  name: string;
  description: string | null;
  project: string;
  size: number;
  status: string;
  zone: string;
  type: string;
  metadata: Text;
  isBootable: boolean;
  createdAt: number;
  image: string | undefined;
  attachments: Attachment[];
  bytes: Bytes;
}

export interface Port {
  id: string;
  name: string;
  project: string;
  network: Network;
  mac: string;
  address: string;
  device: string;
  owner: string;
  host: string;
  tags: string[];
  description: string;
  securityGroups: string[];
  createdAt: number;
  /** Nova made it, and removes it with its server. */
  isNovas: boolean;
}

export interface FloatingIp {
  id: string;
  project: string;
  network: Network;
  address: string;
  port: string | null;
  tags: string[];
  description: string;
  createdAt: number;
}

export interface SecurityGroup {
  id: string;
  name: string;
  project: string;
  description: string;
  tags: string[];
  rules: { id: string; [field: string]: unknown }[];
}

export interface Keypair {
  name: string;
  publicKey: string;
}
