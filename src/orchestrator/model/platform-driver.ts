import type { CloudInit } from '../../contract/cloud-init.ts';
import type { PortForward } from '../../contract/instance.ts';
import type { DestroyOrder } from './destroy-order.ts';

/**
 * The name of one attempt to make a platform resource, chosen and stored before the attempt: at most 63 characters of
 * [a-z0-9-]. The driver puts it on the resource as name, tag or metadata, and on its disks. Two attempts for one instance
 * have two names, which `attempt.ts` forms.
 */
export type OwnerRef = string;

/** The limits of one changing call. */
export interface Call {
  /** Milliseconds since the epoch. The driver begins no command after it. */
  readonly deadline: number;
  /**
   * Higher with each claim of the resource's work, over all servers. A command with a lower fence than one before it comes
   * from a server that lost its claim: the host or the engine refuses it.
   */
  readonly fence: number;
  /** Aborted when the call is given up: the driver kills its commands, and its promise settles once they have ended. */
  readonly signal: AbortSignal;
}

/** What the platform is asked to make. All of it is known before the first call. */
export interface MachineSpec {
  ref: OwnerRef;
  offerId: string;
  /** The platform's own code for the place; the API never shows it. */
  datacenter: string;
  hostname: string;
  image: string;
  vcpus: number;
  memoryGb: number;
  rootDiskGb: number;
  gpuCount: number;
  gpuType: string | undefined;
  /** authorized_keys lines, each checked. All of them are injected. */
  sshKeys: readonly string[];
  cloudInit: CloudInit | undefined;
  note: Note;
  /** The host from `place`: the resource is made there, or the create fails. Absent: the platform chooses. */
  host?: string;
  /** Hosts that an operator has cordoned: it is made on another. Absent: there are none. */
  avoidHosts?: readonly string[];
}

/** A host that could take one more resource now. */
export interface Placement {
  host: string;
  /** How many such resources fit there, by the platform's own count. */
  units: number;
  /** The machines or volumes that `units` already accounts for. */
  counted: readonly OwnerRef[];
}

/** The hosts that could take a resource, the best first. */
export type Placing =
  | { answer: 'placed'; hosts: readonly Placement[] }
  /** No host can take it now. */
  | { answer: 'refused'; code: 'capacity' | 'image_missing' | 'invalid'; detail: string }
  | { answer: 'unknown'; reason: string };

/**
 * Text of ours that the platform stores with a resource and returns when the resource is read: its owner and what was
 * bought. A row that was lost with the database is restored from it. At most 8 KiB, without secrets.
 */
export type Note = string;

/** Where a machine is reached. */
export interface Endpoint {
  publicIp: string;
  privateIp?: string;
  sshPort: number;
  sshUsername: string;
  portForwards?: PortForward[];
  /** `SHA256:…` as OpenSSH prints it, where the platform can tell; otherwise the first probe pins it. */
  hostKeyFingerprint?: string;
}

/**
 * `paused`: its processors are halted and its memory is kept, by an operator or by the engine, such as QEMU when the
 * host's disk is full. It lasts until it is resumed, which `start` does.
 */
export const powers = [
  'building',
  'running',
  'stopping',
  'stopped',
  'starting',
  'paused',
  'failed',
  'destroying',
] as const;
export type Power = (typeof powers)[number];

/** A fault that does not stop the machine, such as a card that is on no bridge. For the operator. */
export interface MachineFault {
  finding: string;
  remedy: string;
}

export interface ObservedMachine {
  ref: OwnerRef;
  power: Power;
  /** Milliseconds since the Unix epoch. */
  createdAt: number;
  /** Absent until the platform has given the machine an address. */
  endpoint?: Endpoint;
  /** Which host of the platform has it, where the platform tells: losses are counted per host too. */
  host?: string;
  /** The platform's words when `power` is `failed` or `paused`. */
  detail?: string;
  /** Changes no status: it is an alarm until the machine is shown without it. */
  fault?: MachineFault;
  /** Its current name on the platform, if it was renamed there. */
  renamedTo?: string;
  /** As the create gave it; absent where the manifest says that notes are not kept. */
  note?: Note;
}

/**
 * Which hosts an answer about machines is from, where the platform has hosts that may be silent while it answers. A machine
 * that was last seen on any other host, such as one that was renamed or has left the configuration, is not proved gone.
 */
export interface AskedHosts {
  /** These have told all that they have. */
  answered: readonly string[];
  /** These do not answer. What they have may be left out. */
  silent: readonly string[];
}

/** Reading one resource has three answers, never two. Only `gone` is proof of absence. */
export type Presence<T> =
  | { answer: 'observed'; value: T }
  | {
      answer: 'gone';
      /** Absent: the platform answers for every host that it ever had. */
      hosts?: AskedHosts;
    }
  | {
      answer: 'unknown';
      reason: string;
      /** Where some hosts did not answer: the others have, and do not have it. */
      hosts?: AskedHosts;
    };

/** A copy of one of our resources, under another name on the platform. */
export interface CopyOfResource {
  /** The name in its mark. */
  ref: OwnerRef;
  /** Its name on the platform. */
  name: string;
  host?: string;
}

/** Files or disks of a resource whose record is missing from the platform. */
export interface Leftover {
  ref: OwnerRef;
  host?: string;
  /** What was found, such as file names. */
  detail: string;
}

/** All resources that carry our tag. Absence from a listing is never proof. */
export type Listing<T> =
  | {
      answer: 'listed';
      items: T[];
      /**
       * Copies of our resources, made outside Berth: they have the mark of a listed resource and another identity. They are
       * alarms, and never counted, adopted or destroyed.
       */
      copies?: readonly CopyOfResource[];
      /** Disks with our names that belong to none of the listed machines and volumes. */
      leftovers?: readonly Leftover[];
      /** Absent: the platform answers for every host that it ever had. */
      hosts?: AskedHosts;
    }
  | { answer: 'unknown'; reason: string };

/** How many more machines of an offer the platform could make in a datacenter now: one figure for both. */
export interface FreeUnits {
  offerId: string;
  datacenter: string;
  units: number;
}

/** What can be promised of a host, and what is. */
export interface HostShare {
  total: number;
  taken: number;
}

export const deviceStates = ['free', 'claimed', 'dirty', 'quarantined', 'unusable'] as const;

/** A device of a host that is sold, such as a GPU. */
export interface HostDevice {
  /** As the platform names it, such as its PCI address. */
  id: string;
  type: string;
  /**
   * `claimed`: a machine has it, or a stopped one holds it · `dirty`: it was not reset since a machine had it ·
   * `quarantined`: it failed, and waits for an operator · `unusable`: the host cannot give it away as it is set up.
   */
  state: (typeof deviceStates)[number];
  /** Which machine of ours has it. */
  ref?: OwnerRef;
  /** Why it is not free. */
  detail?: string;
}

export const hostStates = ['open', 'closed', 'silent'] as const;

/** A host, for the operator: nothing is decided by it. */
export interface ObservedHost {
  host: string;
  /** `closed`: nothing new is placed there · `silent`: it does not answer. */
  state: (typeof hostStates)[number];
  /** Why it is not open. */
  detail?: string;
  /** Absent: it is not known. */
  vcpus?: HostShare;
  memoryGb?: HostShare;
  diskGb?: HostShare;
  devices?: readonly HostDevice[];
}

/** What the platform's hosts have room for. Each offer is counted as if it were the only one that is sold. */
export type Inventory =
  | {
      answer: 'counted';
      free: readonly FreeUnits[];
      /**
       * The machines whose room is taken off `free` already, of the same moment. Absent: those of the last listing, and
       * while machines are being made or removed less is sold than there is.
       */
      counted?: readonly OwnerRef[];
      /** Every host, also those that do not answer. Absent: the platform does not tell of its hosts. */
      hosts?: readonly ObservedHost[];
    }
  | { answer: 'unknown'; reason: string };

export const failureCodes = [
  'capacity',
  'quota',
  'invalid',
  'unsupported',
  'image_missing',
  'conflict',
  'transient',
  'unknown_outcome',
  'auth',
  'gone',
  'already_exists',
  'boot_failed',
  'device_fault',
  'disk_lost',
  /** The volume is on another host than the machine. */
  'elsewhere',
  /** An earlier call left a resource that cannot be completed: it has to be removed, and made again under another name. */
  'unfinished',
  'internal',
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** The outcome of one short, re-entrant call. */
export type Step<T> =
  | { outcome: 'done'; value: T }
  | {
      outcome: 'pending';
      /** Handed back on the next call of the same step, over restarts too. */
      cookie: string;
      pollAfterMs: number;
    }
  | {
      outcome: 'failed';
      code: FailureCode;
      /** Whether something may have been changed on the platform all the same. */
      sideEffect: 'none' | 'possible' | 'certain';
      detail: string;
      retryAfterMs?: number;
    };

/** What a driver can do. The shared suite branches on it both ways. */
export interface DriverManifest {
  name: string;
  /** Whether a machine can be stopped with its disk kept. */
  stop: boolean;
  /** Whether a stopped machine can be started again. */
  resume: boolean;
  /** Whether a running machine can be reset, its disk kept. */
  restart: boolean;
  /** `hot`: while running · `cold`: only while stopped · `none`: no volumes at all. */
  attachVolume: 'hot' | 'cold' | 'none';
  /** `attached`: volumes grow at any time · `detached`: only while they are attached to nothing · `none`: never. */
  resizeVolume: 'attached' | 'detached' | 'none';
  /**
   * How long after a create was sent or answered `get` and `list` may still not show the resource. 0: a `get` right
   * after the call is conclusive.
   */
  createVisibleWithinMs: number;
  /** Whether what is observed comes with the note that it was created with. */
  keepsNotes: boolean;
  /** Whether the host or the engine refuses a command of an earlier claim. Absent: it does not. */
  fences?: boolean;
  /** How many bytes of user data a machine can be given, as `cloud-init/render.ts` writes it. 0: no cloud-init. */
  cloudInitBytes: number;
}

/** What the drivers of the configured platforms can do. */
export interface Manifests {
  /**
   * Of a row or an offer.
   *
   * @throws {ApiError} `unavailable` where another process serves its platform, and this one is not configured for it
   */
  of(resource: { platform: string }): DriverManifest;
}

export interface VolumeSpec {
  ref: OwnerRef;
  datacenter: string;
  sizeGb: number;
  type: string | undefined;
  note: Note;
  /** As with machines. */
  host?: string;
}

export interface ObservedVolume {
  ref: OwnerRef;
  /** The machines that the platform holds an attachment record for. */
  attachedTo: OwnerRef[];
  createdAt: number;
  /** Absent where the platform does not tell. */
  sizeGb?: number;
  /** Which host of the platform has it. Absent: every host reaches it, or the platform does not tell. */
  host?: string;
  /** As with machines. */
  renamedTo?: string;
  /** As with machines. */
  note?: Note;
}

/**
 * Each call is short (the core gives it a deadline), re-entrant and safe to repeat. `call` is absent when a person tries
 * the driver.
 */
export interface VolumeDriver {
  get(ref: OwnerRef): Promise<Presence<ObservedVolume>>;
  list(): Promise<Listing<ObservedVolume>>;
  /** As with machines: the hosts that could take the volume now. */
  place?(spec: VolumeSpec, avoidHosts: readonly string[]): Promise<Placing>;
  create(spec: VolumeSpec, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /**
   * Done when the record is in place; attaching twice is success. A volume that is on another host than the machine is
   * refused as `elsewhere`.
   */
  attach(ref: OwnerRef, machine: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  /** Done when the record is gone; detaching what is not attached is success. */
  detach(ref: OwnerRef, machine: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  /** Done when it is that large; what is as large already is success, what is larger is `invalid`. */
  resize(ref: OwnerRef, sizeGb: number, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /**
   * Copies the volume to the host and under the name of `spec`. Done when the copy is complete and verified; the original
   * stays. Absent: no volume can be moved.
   */
  copy?(ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /** Done only on proof of absence; force-detaches what lingers. */
  destroy(ref: OwnerRef, cookie: string | null, order: DestroyOrder, call?: Call): Promise<Step<null>>;
}

/**
 * Translates and classifies; decides nothing. The core owns journal, retries, deadlines, capacity
 * and the SSH probe. A call may reject: the core takes that for `unknown_outcome`. `call` is absent when a person tries
 * the driver.
 */
export interface PlatformDriver {
  readonly manifest: DriverManifest;
  get(ref: OwnerRef): Promise<Presence<ObservedMachine>>;
  list(): Promise<Listing<ObservedMachine>>;
  /** Done when the platform runs the machine and it has an endpoint. */
  create(spec: MachineSpec, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /**
   * The hosts that could take the machine now, the best first. A machine whose volumes are on a host is placed there.
   * Absent: the platform chooses, and shows the host with the machine.
   */
  place?(spec: MachineSpec, avoidHosts: readonly string[]): Promise<Placing>;
  /** Done when it is shut off, disk kept. A paused machine may not hear an order to shut down. */
  stop(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /** Done when it runs again, with an endpoint. A paused machine is resumed, with what it has in memory. */
  start(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /**
   * Resets a running machine: what was in its memory is lost, its disk and its address stay. Done when it runs again
   * after that. The same `id` is one restart, however often the call is repeated and whoever repeats it: what was sent
   * and not answered is sent again. A machine that does not run is a `conflict`.
   */
  restart(ref: OwnerRef, id: string, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /** Done only on proof that the machine, its disk, temporary keys and port forwards are gone. Volumes stay. */
  destroy(ref: OwnerRef, cookie: string | null, order: DestroyOrder, call?: Call): Promise<Step<null>>;
  /**
   * Removes our mark: from then on the driver does not list, count, follow or remove the machine and its disks. Its ports and
   * its address are free. A machine that is not shut off is a `conflict`. Absent: the driver cannot do it.
   */
  disown?(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  readonly volumes?: VolumeDriver;
  /**
   * What there is room for, by the platform's own count: hosts that are down or cordoned, devices that are broken.
   * Absent: the platform does not tell, and the catalog's units decide alone. An offer that it does not name is not
   * limited by it. `avoidHosts`: those that an operator has cordoned count as having none.
   */
  inventory?(avoidHosts?: readonly string[]): Promise<Inventory>;
  /** The end of what the machine wrote to its console, at most 16 KiB; undefined: there is nothing. */
  consoleTail?(ref: OwnerRef): Promise<string | undefined>;
  /** Closes sockets, files and timers. Machines stay. */
  close(): Promise<void>;
}
