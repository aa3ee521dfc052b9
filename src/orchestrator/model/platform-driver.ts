import type { CloudInit } from '../../contract/cloud-init.ts';
import type { PortForward } from '../../contract/instance.ts';
import type { DestroyOrder } from './destroy-order.ts';
import type { Inventory } from './inventory.ts';

/**
 * The name of one attempt to make a platform resource, at most 63 characters of [a-z0-9-]. It is chosen and stored
 * before the attempt. The driver puts it on the resource and its disks as name, tag or metadata. Each attempt for an
 * instance has its own name; see `attempt.ts`.
 */
export type OwnerRef = string;

/** The limits of one call that changes something. */
export interface Call {
  /** Milliseconds since the epoch. The driver starts no command after it. */
  readonly deadline: number;
  /**
   * Increases with each claim of the resource's work, across all servers. The host or the engine refuses a command with
   * a lower fence than an earlier one: its sender has lost the claim.
   */
  readonly fence: number;
  /**
   * Aborted when the core gives up the call. The driver then kills its commands; its promise settles once they have
   * ended.
   */
  readonly signal: AbortSignal;
}

/** The machine to make. All of it is known before the first call. */
export interface MachineSpec {
  ref: OwnerRef;
  offerId: string;
  /** The platform's own code for the location; the API never shows it. */
  datacenter: string;
  hostname: string;
  image: string;
  vcpus: number;
  memoryGb: number;
  rootDiskGb: number;
  gpuCount: number;
  gpuType: string | undefined;
  /** authorized_keys lines, each validated. All of them are injected. */
  sshKeys: readonly string[];
  cloudInit: CloudInit | undefined;
  note: Note;
  /**
   * The host chosen from the answer of `place`. The machine is made there, or the create fails. If absent, the platform
   * chooses.
   */
  host?: string;
  /** Hosts that are cordoned or refuse creates. The machine is made on another one. Absent if there are none. */
  avoidHosts?: readonly string[];
}

/** A host that can take one more resource now. */
export interface Placement {
  host: string;
  /** How many such resources fit there, according to the platform. */
  units: number;
  /** The machines or volumes that `units` already takes into account. */
  counted: readonly OwnerRef[];
}

/** The hosts that can take a resource, best first. */
export type Placing =
  | { answer: 'placed'; hosts: readonly Placement[] }
  /** No host can take the resource now. */
  | { answer: 'refused'; code: 'capacity' | 'image_missing' | 'invalid'; detail: string }
  | { answer: 'unknown'; reason: string };

/**
 * Text that Berth stores with a resource and the platform returns when the resource is read: its owner and what was
 * bought. A row that is missing from the database is restored from it. At most 8 KiB, without secrets.
 */
export type Note = string;

/** How to reach a machine. */
export interface Endpoint {
  publicIp: string;
  privateIp?: string;
  sshPort: number;
  sshUsername: string;
  portForwards?: PortForward[];
  /** `SHA256:…` as OpenSSH prints it, if the platform reports it. Otherwise the first probe pins the key. */
  hostKeyFingerprint?: string;
}

/**
 * The power states of a machine. `paused`: its processors are halted and its memory is kept. An operator or the engine
 * did it, such as QEMU when the host's disk is full. It lasts until `start` resumes the machine. `starting` and `stopping`
 * end without a further call.
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

/** A fault that does not stop the machine, such as a network card without a bridge. For the operator. */
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
  /** The host of the platform that runs it, if the platform reports hosts. Losses are also counted per host. */
  host?: string;
  /** The platform's own words when `power` is `failed` or `paused`. */
  detail?: string;
  /**
   * A fault of the machine. It does not change the status. It raises an alarm until the machine is observed without it.
   */
  fault?: MachineFault;
  /**
   * The platform has the machine but does not answer about it: everything else is its last known state, from which
   * nothing is concluded. `fault` says why.
   */
  isLastKnown?: boolean;
  /** Its current name on the platform, if it was renamed there. */
  renamedTo?: string;
  /** The note that was passed to the create. Absent if the manifest says that notes are not kept. */
  note?: Note;
}

/**
 * The hosts behind an answer, for platforms that can answer while some hosts are silent. A machine last seen on any
 * other host, such as one that was renamed or left the configuration, is not proved gone.
 */
export interface HostAnswers {
  /** Hosts that have reported everything they have. */
  answered: readonly string[];
  /** Hosts that do not answer. Their resources may be missing from the answer. */
  silent: readonly string[];
}

/** The answer to reading one resource. Only `gone` proves absence. */
export type Presence<T> =
  | { answer: 'observed'; value: T }
  | {
      answer: 'gone';
      /** If absent, the answer covers every host that the platform ever had. */
      hosts?: HostAnswers;
    }
  | {
      answer: 'unknown';
      reason: string;
      /** Present if some hosts did not answer. The other hosts answered and do not have the resource. */
      hosts?: HostAnswers;
    };

/** A copy of one of Berth's resources, under another name on the platform. */
export interface CopyOfResource {
  /** The name in the mark of the copy. */
  ref: OwnerRef;
  /** The name of the copy on the platform. */
  name: string;
  host?: string;
}

/**
 * Parts of a resource, such as disks, ports or addresses, whose machine or volume is missing from the platform although
 * nobody ordered its removal. A listing has one for each ref.
 */
export interface Leftover {
  ref: OwnerRef;
  host?: string;
  /** Each part with its name or id. */
  detail: string;
  /** The note, if a part keeps it: parts of another installation are ignored. */
  note?: Note;
}

/** All resources that carry Berth's tag. Absence from a listing never proves absence. */
export type Listing<T> =
  | {
      answer: 'listed';
      items: T[];
      /**
       * Copies of Berth's resources, made outside Berth. Each has the mark of a listed resource and another identity.
       * They raise alarms; they are never counted, adopted or destroyed.
       */
      copies?: readonly CopyOfResource[];
      /** Parts with Berth's mark that belong to none of the listed machines or volumes. */
      leftovers?: readonly Leftover[];
      /** If absent, the answer covers every host that the platform ever had. */
      hosts?: HostAnswers;
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
  /** An earlier call left a resource that cannot be completed. It must be removed and made again under another name. */
  'unfinished',
  'internal',
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** What the platform is doing in a pending step. Shown to operators; no decision depends on it. */
export interface Progress {
  /** The platform's own words, such as `spawning`. */
  phase: string;
  /** When this phase is overdue and raises an alarm, in milliseconds since the epoch. If absent, it never is. */
  deadlineAt?: number;
}

/** The outcome of one short, re-entrant call. */
export type Step<T> =
  | { outcome: 'done'; value: T }
  | {
      outcome: 'pending';
      /** The driver's state. It is passed to the next call of the same step, also after a restart of the server. */
      cookie: string;
      pollAfterMs: number;
      /** Absent if the platform does not say. */
      progress?: Progress;
    }
  | {
      outcome: 'failed';
      code: FailureCode;
      /** Whether the failed call may have changed something on the platform. */
      sideEffect: 'none' | 'possible' | 'certain';
      detail: string;
      retryAfterMs?: number;
      /** The host that refused a create, if the platform chose it and says so. */
      host?: string;
    };

/** What a driver can do. The shared test suite covers both values of each capability. */
export interface DriverManifest {
  name: string;
  /** Whether a machine can be stopped without losing its disk. */
  stop: boolean;
  /** Whether a stopped machine can be started again. */
  resume: boolean;
  /** Whether a running machine can be reset without losing its disk. */
  restart: boolean;
  /** `hot`: while the machine runs. `cold`: only while it is stopped. `none`: no volumes at all. */
  attachVolume: 'hot' | 'cold' | 'none';
  /** `attached`: a volume can grow at any time. `detached`: only while it is not attached. `none`: never. */
  resizeVolume: 'attached' | 'detached' | 'none';
  /**
   * How long `get` and `list` may omit the resource after its create was sent or answered. With 0, a `get` right after
   * the call is conclusive.
   */
  createVisibleWithinMs: number;
  /** Whether an observed resource carries the note that it was created with. */
  keepsNotes: boolean;
  /** Whether the platform reports how much of its volumes is used. The default is false. */
  volumeUsage?: boolean;
  /** Whether the host or the engine refuses a command of an earlier claim. The default is false. */
  fences?: boolean;
  /** Whether the platform keeps the mark of the server that writes to it. The default is false. */
  marksWriter?: boolean;
  /** The largest user data of a machine in bytes, as `cloud-init/render.ts` writes it. 0 means no cloud-init. */
  cloudInitBytes: number;
}

export interface Manifests {
  /**
   * The manifest for a row or an offer.
   *
   * @throws {ApiError} `unavailable` if another process serves its platform and this one is not configured for it
   */
  of(resource: { platform: string }): DriverManifest;
}

export interface VolumeSpec {
  ref: OwnerRef;
  datacenter: string;
  sizeGb: number;
  type: string | undefined;
  note: Note;
  /** See {@link MachineSpec}. */
  host?: string;
}

export interface ObservedVolume {
  ref: OwnerRef;
  /** The machines that the platform has an attachment record for. */
  attachedTo: OwnerRef[];
  createdAt: number;
  /** Absent if the platform does not report it. */
  sizeGb?: number;
  /**
   * The host of the platform that has it. Absent if every host can reach it, or if the platform does not report hosts.
   */
  host?: string;
  /** See {@link ObservedMachine}. */
  renamedTo?: string;
  /** See {@link ObservedMachine}. */
  note?: Note;
}

/** How much of a volume is used: the storage that it takes on the platform. */
export interface VolumeUse {
  ref: OwnerRef;
  usedBytes: number;
}

/**
 * Manages volumes. Each call is short (the core sets a deadline), re-entrant and safe to repeat. `call` is absent when
 * a person tries the driver.
 */
export interface VolumeDriver {
  get(ref: OwnerRef): Promise<Presence<ObservedVolume>>;
  list(): Promise<Listing<ObservedVolume>>;
  /** The use of all volumes whose use is known. Present if and only if the manifest says `volumeUsage`. */
  usage?(): Promise<Listing<VolumeUse>>;
  /** The hosts that can take the volume now, as in {@link PlatformDriver}. */
  place?(spec: VolumeSpec, avoidHosts: readonly string[]): Promise<Placing>;
  create(spec: VolumeSpec, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /**
   * Done when the attachment record is in place. Attaching twice is a success. If the volume is on another host than
   * the machine, the call fails with `elsewhere`.
   */
  attach(ref: OwnerRef, machine: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  /** Done when the attachment record is gone. Detaching a volume that is not attached is a success. */
  detach(ref: OwnerRef, machine: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  /** Done when the volume has that size. The current size is a success; a smaller size is `invalid`. */
  resize(ref: OwnerRef, sizeGb: number, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /**
   * Copies the volume to the host and under the name in `spec`. Done when the copy is complete and verified; the
   * original stays. Without this method, volumes cannot be moved.
   */
  copy?(ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>>;
  /** Done only on proof of absence. Force-detaches remaining attachments. */
  destroy(ref: OwnerRef, cookie: string | null, order: DestroyOrder, call?: Call): Promise<Step<null>>;
}

/**
 * Short texts that the platform itself keeps, by key: one for each installation. They show a server that another one,
 * with a copy of its database, writes to the platform. A key is at most 100 characters of [a-z0-9-], a text at most
 * 200 characters.
 */
export interface WriterMarks {
  /** The text of the platform, or of each host that answers. '' or nothing if there is none. Rejects if none answers. */
  read(key: string): Promise<readonly string[]>;
  /**
   * Replaces the text, on each host that answers; '' removes it. Rejects if none answers, or if it is not stored: with
   * {@link NoRoomForMark} if the platform has none and takes none, which a server works without.
   */
  write(key: string, text: string): Promise<void>;
}

/**
 * Translates and classifies; makes no decisions. The core owns the journal, retries, deadlines, capacity and the SSH
 * probe. A call may reject: the core treats that as `unknown_outcome`. `call` is absent when a person tries the driver.
 */
export interface PlatformDriver {
  readonly manifest: DriverManifest;
  get(ref: OwnerRef): Promise<Presence<ObservedMachine>>;
  list(): Promise<Listing<ObservedMachine>>;
  /** Done when the machine runs on the platform and has an endpoint. */
  create(spec: MachineSpec, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /**
   * The hosts that can take the machine now, best first. If a host has the machine's volumes, it is placed there.
   * Without this method, the platform chooses the host and reports it with the machine.
   */
  place?(spec: MachineSpec, avoidHosts: readonly string[]): Promise<Placing>;
  /** Done when the machine is shut off; its disk is kept. A paused machine may not react to a shutdown request. */
  stop(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /** Done when the machine runs again and has an endpoint. A paused machine is resumed with its memory. */
  start(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /**
   * Resets a running machine: its memory is lost, its disk and address stay. Done when it runs again. All calls with
   * the same `id` are one restart, from any server; a command without an answer is sent again. A machine that is not
   * running is a `conflict`.
   */
  restart(ref: OwnerRef, id: string, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>>;
  /** Done only on proof that the machine, its disk, temporary keys and port forwards are gone. Volumes stay. */
  destroy(ref: OwnerRef, cookie: string | null, order: DestroyOrder, call?: Call): Promise<Step<null>>;
  /**
   * Removes Berth's mark. The driver then no longer lists, counts, follows or removes the machine and its disks; its
   * ports and address are free. A machine that is not shut off is a `conflict`. A driver without this method does not
   * support it.
   */
  disown?(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>>;
  readonly volumes?: VolumeDriver;
  /** Present if and only if the manifest says `marksWriter`. */
  readonly writer?: WriterMarks;
  /**
   * Free capacity as the platform counts it, without hosts that are down or cordoned and broken devices. Without this
   * method, only the catalog's units limit sales. An offer that the answer does not name is not limited by it. Hosts in
   * `avoidHosts` (cordoned, or out of placement because they refuse creates) count as full.
   */
  inventory?(avoidHosts?: readonly string[]): Promise<Inventory>;
  /** The end of the machine's console output, at most 16 KiB. Undefined if there is none. */
  consoleTail?(ref: OwnerRef): Promise<string | undefined>;
  /** Closes sockets, files and timers. Machines keep running. */
  close(): Promise<void>;
}
