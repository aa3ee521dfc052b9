import { asksForInstances, asksForList } from '../contract/paths.ts';
import type { Credential } from '../transcript/records.ts';

export interface Call {
  method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL. */
  path: string;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
  /** The run's usual one when absent: `api key`, or `access token` for a target that takes no other. */
  credential?: Credential;
  /** The Authorization header, where the credential is `altered`. */
  authorization?: string;
  /** `application/json` when absent. Goes with a body only. */
  contentType?: string;
}

const MIB = 1024 * 1024;
/** Some thirty thousand instances, or as many offers. */
export const LONGEST_LIST_BYTES = 64 * MIB;
const LONGEST_OBJECT_BYTES = MIB;
/** All answers are kept until the run is judged. Once this much has come, only small ones are read. */
const MOST_BYTES_IN_ALL = 192 * MIB;
export const SMALL_BODY_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
const ACTION_TIMEOUT_MS = 180_000;

/** Whether so much is kept that of the account's instances only the run's own are. */
export function isNearMemoryLimit(bytesKept: number): boolean {
  return bytesKept >= MOST_BYTES_IN_ALL;
}

/** The longest answer that is read. `bytesKept` is what is kept of those before. */
export function maxBodyBytes(call: Call, bytesKept: number): number {
  if (asksForInstances(call)) return LONGEST_LIST_BYTES;
  if (isNearMemoryLimit(bytesKept)) return SMALL_BODY_BYTES;
  return asksForList(call) ? LONGEST_LIST_BYTES : LONGEST_OBJECT_BYTES;
}

/** A stop or a DELETE may be answered when it is done, which the contract does not say to be at once. */
export function timeoutMs({ method, path }: Call): number {
  const isAction = method === 'DELETE' || (method === 'POST' && path.split('/').length > 3);
  return isAction ? ACTION_TIMEOUT_MS : REQUEST_TIMEOUT_MS;
}
