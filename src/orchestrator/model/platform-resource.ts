import type { OwnerRef } from './platform-driver.ts';

const REF_PREFIX = 'berth-';

/** The id that an owner ref is made of. */
export function idOf(ref: OwnerRef): string {
  return ref.startsWith(REF_PREFIX) ? ref.slice(REF_PREFIX.length) : ref;
}

/** `createOpenUntil` of a resource whose create may still be sent, or may be out without anybody who knows its answer. */
export const CREATE_IS_OPEN = Number.MAX_SAFE_INTEGER;

/** The columns that an instance and a volume share here. */
export interface PlatformResource {
  ownerRef: OwnerRef;
  /**
   * The last moment at which a create of this resource may have been answered, in milliseconds since the epoch;
   * {@link CREATE_IS_OPEN}: one may still be sent. A `gone` of the platform proves nothing until `createVisibleWithinMs`
   * after it. Null: the platform has shown the resource, or nothing was made.
   */
  createOpenUntil: number | null;
}
