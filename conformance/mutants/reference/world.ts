import type { AutoClock } from './auto-clock.ts';
import { ApiError } from './errors.ts';
import type { ReferenceRequest } from './exchange.ts';
import type { Instance, Offer, ReferenceOptions, Volume, VolumeLocation } from './model.ts';
import type { Rules } from './rules.ts';
/** The whole state of the reference. */
export interface World {
  clock: AutoClock;
  options: ReferenceOptions;
  rules: Rules;
  offers: readonly Offer[];
  locations: readonly VolumeLocation[];
  /** Includes destroyed ones. */
  instances: Map<string, Instance>;
  volumes: Map<string, Volume>;
  /** When each issued token expires, on the clock's `now()`. */
  tokens: Map<string, number>;
}

/** The body as JSON. @throws {ApiError} 400 */
export function readBody({ rules }: World, request: ReferenceRequest): unknown {
  try {
    return rules.readBody(request);
  } catch {
    throw new ApiError(400, 'invalid_request', 'The body is not JSON.');
  }
}
