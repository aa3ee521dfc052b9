import { z } from 'zod';
import type { Progress } from './platform-driver.ts';

/**
 * The next step of one resource. A use case writes it in the transaction that writes the resource.
 *
 * Instances: `create` → `verify` (the SSH proof) · `stop` · `start` → `verify` · `restart` · `destroy` · `observe`
 * (read the machine, since something differs) · `hold` (keep the machine of a failed instance until the deadline or a
 * request) · `release` (release what a lost instance held, once its machine is proved gone).
 * Volumes: `create` · `attach` (attach and detach as wanted) · `resize` → `attach` · `destroy`.
 * Earlier attempts: `destroy`.
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

/** What the platform is doing in a step, and since when. Times are milliseconds since the epoch. */
export interface WorkProgress extends Progress {
  /** When Berth first read this phase in this step. */
  since: number;
}

/** Whether the platform's own deadline for the phase has passed. */
export function isOverdue(progress: WorkProgress | null, now: number): progress is Required<WorkProgress> {
  return progress?.deadlineAt !== undefined && progress.deadlineAt <= now;
}

/** One row of durable work: at most one for each resource. Times are milliseconds since the epoch. */
export interface Work {
  /** The id of an instance or a volume, or the ref of an earlier attempt to make one. */
  resourceId: string;
  resourceKind: ResourceKind;
  kind: InstanceWorkKind | VolumeWorkKind;
  /** The driver's state between two calls of one step. Restarts, resizes and moves store more in it: see `CookieCodec`. */
  cookie: string | null;
  /** How often this step was claimed. Above 1, an earlier call may have had an effect. */
  attempt: number;
  notBefore: number;
  /** When the step counts as failed. Null for never. */
  deadlineAt: number | null;
  lastError: string | null;
  /** The last progress that the platform reported in this step. Null if it reported none. */
  progress: WorkProgress | null;
  /**
   * The attempt before which the step waited for a resource that an earlier create may still have made. Null if it did
   * not wait.
   */
  waitedAttempt: number | null;
  /** Whether ending the instance is held back by a loss cap. The step repeats until an operator accepts the loss. */
  isHeld: boolean;
}

/** A row of work as shown to an operator. */
export interface OpenWork extends Work {
  platform: string;
  /** Since when it is due, regardless of later tries. */
  waitsSince: number;
  /** The end of the lease. If it is in the past, no server works on the row. */
  leaseUntil: number;
}

/**
 * A claim on a row of work. `token` is unique to the claim and checked by each later write, so a holder that was paused
 * and lost the lease writes nothing.
 */
export interface Lease extends Work, Pick<OpenWork, 'waitsSince'> {
  token: string;
  /** Renewed while a call that the core gave up is still running. */
  until: number;
  /** See `Call`. */
  fence: number;
}

/** The state of a lease when its holder writes: still held, superseded by a use case's other work, or lost. */
export type LeaseCheck = { state: 'held'; deadlineAt: number | null } | { state: 'superseded' | 'lost' };

export interface WorkReader {
  /** In a transaction, locks the row: no server can claim it meanwhile. */
  of(resourceId: string): Promise<(Work & Pick<OpenWork, 'leaseUntil'>) | null>;
  /** The number of rows of open work, and when the oldest first became due, regardless of later tries. */
  backlog(): Promise<{ count: number; oldestDueAt: number | null }>;
  /** How many instances have open work, by kind of work. */
  countInstancesByStep(): Promise<{ step: InstanceWorkKind; count: number }[]>;
  /** Lists open work, longest waiting first. */
  list(limit: number): Promise<OpenWork[]>;
}
export interface WorkWriter extends WorkReader {
  /**
   * Replaces the work of a resource. Without a `cookie` it starts from the beginning. A held lease stays held, so the
   * running call settles first.
   */
  put(
    work: Pick<Work, 'resourceId' | 'resourceKind' | 'kind' | 'notBefore' | 'deadlineAt'> &
      Partial<Pick<Work, 'cookie'>>,
  ): Promise<void>;
  /** Makes open work due at once. */
  makeDue(resourceId: string, now: number): Promise<void>;
  /**
   * Locks the row for this transaction and returns whether `lease` still holds it, and its current deadline: the end of
   * an outage may have moved it since the claim.
   */
  check(lease: Lease): Promise<LeaseCheck>;
  /** Moves the end of the lease, in milliseconds since the epoch. Returns false if another process holds it. */
  renew(lease: Lease, until: number): Promise<boolean>;
  /**
   * Releases the lease. `later`: when and with which cookie the same step continues. A wait or a hold that `later` does
   * not mention has ended. Without `progress`, that of the lease is kept.
   */
  release(
    lease: Lease,
    later?: Pick<Work, 'cookie' | 'notBefore' | 'lastError'> &
      Partial<Pick<Work, 'attempt' | 'waitedAttempt' | 'isHeld' | 'progress'>>,
  ): Promise<void>;
  /** Extends the deadline of every open step on a platform by `byMs`, such as the length of its outage. */
  extendDeadlines(platform: string, byMs: number): Promise<void>;
  /** Replaces the step that `lease` holds with another step of the same resource, and releases the lease. */
  replace(lease: Lease, next: Pick<Work, 'kind' | 'notBefore' | 'deadlineAt'>): Promise<void>;
  /** Ends the step. No other step follows. */
  finish(lease: Lease): Promise<void>;
}

/** Encodes the state that a use case or a step stores in the cookie of a row of work for the next call. */
interface CookieCodec<T> {
  encode(value: T): string;
  /** Undefined without a cookie, and for a cookie of another kind of work. */
  decode(cookie: string | null): T | undefined;
}

function cookieCodec<T>(schema: z.ZodType<T>): CookieCodec<T> {
  return {
    encode: (value) => JSON.stringify(value),
    decode: (cookie) => {
      if (cookie === null) return undefined;
      try {
        return schema.safeParse(JSON.parse(cookie)).data;
      } catch {
        return undefined;
      }
    },
  };
}

const restartSchema = z.object({
  /** When it was accepted, in milliseconds since the epoch. */
  since: z.int().nonnegative(),
  /** Identifies this restart of the machine to the platform. */
  id: z.string().min(1),
  /** `order`: the platform has not confirmed the restart. `prove`: it has; the SSH endpoint is not proved yet. */
  phase: z.enum(['order', 'prove']),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type Restart = z.infer<typeof restartSchema>;

export const restartCookie: CookieCodec<Restart> = cookieCodec(restartSchema);

const resizeSchema = z.object({
  /** The new size of the volume. */
  sizeGb: z.number().positive(),
  /** The price at the new size. */
  priceMicroUsdPerHour: z.int().nonnegative(),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type Resize = z.infer<typeof resizeSchema>;

export const resizeCookie: CookieCodec<Resize> = cookieCodec(resizeSchema);

const volumeMoveSchema = z.object({
  /** The name of the copy. */
  target: z.string().min(1),
  /** The host of the copy. */
  host: z.string().min(1),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type VolumeMove = z.infer<typeof volumeMoveSchema>;

const volumeMoveCookie: CookieCodec<VolumeMove> = cookieCodec(volumeMoveSchema);

/** The cookie of an attachment while its volume is copied to another host: the instance's id, then the move. */
export function toVolumeMoveCookie(instanceId: string, move: VolumeMove): string {
  return `${instanceId} ${volumeMoveCookie.encode(move)}`;
}

export function volumeMoveOf(cookie: string | null): VolumeMove | undefined {
  return volumeMoveCookie.decode(cookie?.slice(cookie.indexOf(' ') + 1) ?? null);
}
