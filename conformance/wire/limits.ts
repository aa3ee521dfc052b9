import type { Call } from './wire.ts';

const MIB = 1024 * 1024;
/** Some thirty thousand instances, or as many offers. */
export const LONGEST_LIST_BYTES = 64 * MIB;
const LONGEST_OBJECT_BYTES = MIB;
/** All answers are kept until the run is judged. Once this much has come, only small ones are read. */
const MOST_BYTES_IN_ALL = 192 * MIB;
export const SMALL_BODY_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
const ACTION_TIMEOUT_MS = 180_000;

const LISTS = /^\/(configurations|availability|instances|volumes\/locations)(\?|$)/;

/** Whether it asks for a list, which is as long as there is something to list. */
export function asksForList({ method, path }: { method: string; path: string }): boolean {
  return method === 'GET' && LISTS.test(path);
}

/** Whether it asks for the instances of the account, most of which are not the run's. */
export function asksForInstances({ method, path }: { method: string; path: string }): boolean {
  return method === 'GET' && /^\/instances(\?|$)/.test(path);
}

/** Whether so much is kept that of the account's instances only the run's own are. */
export function isMuchKept(bytesKept: number): boolean {
  return bytesKept >= MOST_BYTES_IN_ALL;
}

/** The longest answer that is read. `bytesKept` is what is kept of those before. */
export function maxBodyBytes(call: Call, bytesKept: number): number {
  if (asksForInstances(call)) return LONGEST_LIST_BYTES;
  if (isMuchKept(bytesKept)) return SMALL_BODY_BYTES;
  return asksForList(call) ? LONGEST_LIST_BYTES : LONGEST_OBJECT_BYTES;
}

/** A stop or a DELETE may be answered when it is done, which the contract does not say to be at once. */
export function timeoutMs({ method, path }: Call): number {
  const isAction = method === 'DELETE' || (method === 'POST' && path.split('/').length > 3);
  return isAction ? ACTION_TIMEOUT_MS : REQUEST_TIMEOUT_MS;
}
