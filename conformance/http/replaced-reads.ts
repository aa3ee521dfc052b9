import type { Exchange } from '../transcript/records.ts';
import type { Call } from './call.ts';

export const ATTEMPTS_WHEN_LIMITED = 7;
export const ATTEMPTS_WHEN_LOST = 3;

/** Which reads the next poll replaces, so that no check judges them. */
export class ReplacedReads {
  readonly #areRepeated: boolean;
  /** How often in a row a path was lost or limited. */
  readonly #inARow = new Map<string, number>();

  /** `areRepeated`: the client itself sends lost and limited reads again. */
  constructor(areRepeated: boolean) {
    this.#areRepeated = areRepeated;
  }

  /** An answer 304, or a GET that is not repeated and was lost or limited, unless that happened too often in a row. */
  has({ method, path, ifNoneMatch }: Call, { answer, failure }: Exchange): boolean {
    if (answer?.status === 304 && ifNoneMatch !== undefined) return true;
    if (this.#areRepeated || method !== 'GET') return false;
    const isLost = failure !== undefined && failure.kind !== 'too_large';
    const isUnanswered = isLost || answer?.status === 429;
    const inARow = isUnanswered ? (this.#inARow.get(path) ?? 0) + 1 : 0;
    this.#inARow.set(path, inARow);
    return inARow > 0 && inARow < (isLost ? ATTEMPTS_WHEN_LOST : ATTEMPTS_WHEN_LIMITED);
  }
}
