/**
 * The next step of one resource. A use case writes it in the transaction that writes the resource.
 *
 * Instances: `create` → `verify` (the SSH proof) · `stop` · `start` → `verify` · `restart` · `destroy` · `observe`
 * (read the machine, since something differs) · `hold` (keep the machine of a failed instance until the deadline or a request) ·
 * `release` (give back what a lost instance held, once its machine is proved gone).
 * Volumes: `create` · `attach` (bring the attachments to what is wanted)
 * · `resize` → `attach` · `destroy`. Earlier attempts: `destroy`.
 */
export const instanceWorkKinds = [
  'create',
  'verify',
  'stop',
  'start',
  'restart',
  'destroy',
  'observe',
  'hold',
  'release',
] as const;
export type InstanceWorkKind = (typeof instanceWorkKinds)[number];
export type VolumeWorkKind = 'create' | 'attach' | 'resize' | 'destroy';
export type ResourceKind = 'instance' | 'volume';

/** One row of durable work: at most one for each resource. Times are milliseconds since the epoch. */
export interface Work {
  /** The id of an instance or a volume, or the ref of an earlier attempt to make one. */
  resourceId: string;
  resourceKind: ResourceKind;
  kind: InstanceWorkKind | VolumeWorkKind;
  /**
   * The driver's state between two calls of one step; a restart and a resize keep more in it, see work-cookies.ts.
   */
  cookie: string | null;
  /** How often this step was claimed. Above 1, an earlier call may have had an effect. */
  attempt: number;
  notBefore: number;
  /** When the step counts as failed; null: never. */
  deadlineAt: number | null;
  lastError: string | null;
  /** The attempt before which the step waited for what an earlier create may still have made; null: it did not. */
  waitedAttempt: number | null;
  /** Whether the instance would end by a loss beyond the cap: it is asked for again until an operator accepts it. */
  isHeld: boolean;
}

/** A row of work as an operator sees it. */
export interface OpenWork extends Work {
  platform: string;
  /** Since when it is due, however often it was tried. */
  waitsSince: number;
  /** Until when a server works on it; over: none does. */
  leaseUntil: number;
}

/**
 * A claim on a row of work. `token` is unique to the claim and each later write repeats it, so that a
 * holder who was paused and lost the lease writes nothing.
 */
export interface Lease extends Work {
  token: string;
  /** Renewed while a call that was given up still runs. */
  until: number;
  /** See `Call`. */
  fence: number;
}

/** The state of a lease when its holder writes: still held, superseded by other work of a use case, or lost. */
export type LeaseState = 'held' | 'superseded' | 'lost';
