import { asksForInstances, asksForList } from '../contract/paths.ts';
import type { JsonObject } from '../text/json.ts';
import type { Credential } from '../transcript/records.ts';

export interface Call {
  method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL. */
  path: string;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
  /** Default: the run's usual credential, `api key`, or `access token` for a target that accepts no other. */
  credential?: Credential;
  /** The Authorization header, if the credential is `altered`. */
  authorization?: string;
  /** Sent without a pause after the request before it. */
  isAtOnce?: true;
  /** Default `application/json`. Only sent with a body. */
  contentType?: string;
  /** The entity tag of a known answer. An answer 304 is recorded as superseded: it shows nothing new. */
  ifNoneMatch?: string;
  /** Instances of a truncated list to keep regardless of their position. */
  keeps?: Kept;
}

export interface Kept {
  isKept(instance: JsonObject): boolean;
  atMost: number;
}

const MIB = 1024 * 1024;
/** Room for about thirty thousand instances or offers. */
export const LONGEST_LIST_BYTES = 64 * MIB;
const LONGEST_OBJECT_BYTES = MIB;
/** All answers are kept in memory until the run is judged. Above this total only small answers are read. */
const MOST_BYTES_IN_ALL = 192 * MIB;
export const SMALL_BODY_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
const ACTION_TIMEOUT_MS = 180_000;

/** Whether memory use is so high that lists are reduced to the run's own instances. */
export function isNearMemoryLimit(bytesKept: number): boolean {
  return bytesKept >= MOST_BYTES_IN_ALL;
}

/** The size limit of an answer. `bytesKept` is the size of all earlier answers in memory. */
export function maxBodyBytes(call: Call, bytesKept: number): number {
  if (asksForInstances(call)) return LONGEST_LIST_BYTES;
  if (isNearMemoryLimit(bytesKept)) return SMALL_BODY_BYTES;
  return asksForList(call) ? LONGEST_LIST_BYTES : LONGEST_OBJECT_BYTES;
}

/** A stop or a DELETE may be answered only when it is complete: the contract does not require an immediate answer. */
export function timeoutMs({ method, path }: Call): number {
  const isAction = method === 'DELETE' || (method === 'POST' && path.split('/').length > 3);
  return isAction ? ACTION_TIMEOUT_MS : REQUEST_TIMEOUT_MS;
}
