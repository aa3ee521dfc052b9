import type { DestroyOrder } from './destroy-order.ts';
import type { OwnerRef } from './platform-driver.ts';
import type { ResourceKind } from './work.ts';

const REF_PREFIX = 'berth-';
const REF = /^berth-(.+?)(?:-g([1-9]\d{0,5}))?$/;

/**
 * One attempt to create a machine or a volume. Its own name on the platform keeps a late call from changing another
 * attempt's result. The resource's row holds the newest attempt (`ownerRef`, `host`, `createOpenUntil`). Earlier
 * attempts, and the copy of a volume that is being moved, have rows with the order to remove them.
 */
export interface Attempt {
  resourceId: string;
  resourceKind: ResourceKind;
  platform: string;
  ref: OwnerRef;
  /** The host on which it was made. Null if unknown: it may be on any host. */
  host: string | null;
  /** Milliseconds since the epoch. */
  openedAt: number;
  /**
   * When the platform proved that nothing of the attempt is left, in milliseconds since the epoch. Null if that is not
   * proved.
   */
  closedAt: number | null;
  destroyOrder: DestroyOrder;
}

/**
 * The name of an attempt. Generation 0 is the bare id. Some platforms use refs as host names: at most 63 characters.
 */
export function refOf(id: string, generation = 0): OwnerRef {
  return `${REF_PREFIX}${id}${generation === 0 ? '' : `-g${generation}`}`;
}

/** The id of the resource that an attempt was for. */
export function idOf(ref: OwnerRef): string {
  return REF.exec(ref)?.[1] ?? ref;
}

/** Whether an id of work is the ref of an attempt rather than the id of an instance or a volume. */
export function isRef(id: string): boolean {
  return id.startsWith(REF_PREFIX);
}

export function generationOf(ref: OwnerRef): number {
  return Number(REF.exec(ref)?.[2] ?? 0);
}

export interface AttemptReader {
  /** The earlier attempts of a resource, oldest first. */
  of(resourceId: string): Promise<Attempt[]>;
  byRef(ref: string): Promise<Attempt | null>;
}
export interface AttemptWriter extends AttemptReader {
  /** Inserts an attempt, or replaces it. */
  put(attempt: Attempt): Promise<void>;
  /** Deletes the row of an attempt that has become the newest of its resource. */
  remove(ref: string): Promise<void>;
  /** Deletes up to `limit` closed attempts that ended before `endedBefore` and whose resource no longer has a row. */
  prune(of: PruneRequest): Promise<void>;
}

/**
 * Up to `limit` tombstones of a platform that ended before `endedBefore`, oldest first. Rows that another row refers to
 * are kept.
 */
export interface PruneRequest {
  platform: string;
  endedBefore: number;
  limit: number;
}
export interface Pruned {
  ids: string[];
  /** The latest creation time among them. Null if none were deleted. */
  newestCreatedAt: number | null;
}
