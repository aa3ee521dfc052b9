import { isObject, parseJson, stringField } from '../text/json.ts';
import { type Kept, SMALL_BODY_BYTES } from './call.ts';

/** A longer list is truncated. */
const LONGEST_KEPT_CHARS = 1024 * 1024;
const OTHERS_KEPT = 300;
const NONE: Kept = { isKept: () => false, atMost: 0 };

/** Distinguishes the run's own instances from the others of the account. */
export class OwnInstances {
  readonly #isOwnName: (name: string) => boolean;
  readonly #ids = new Set<string>();

  constructor(isOwnName: (name: string) => boolean) {
    this.#isOwnName = isOwnName;
  }

  /** Records the id in an answer to a create. */
  add(body: string): void {
    const id = stringField(parseJson(body), 'id');
    if (id !== undefined) this.#ids.add(id);
  }

  /**
   * Truncates a long list of instances: keeps the run's own, those that `keeps` accepts, and the first of the others
   * (none near the memory limit). `leftOut` counts the removed instances. A body that is not a list is cut, and
   * `leftOut` counts the characters.
   */
  trimmed(
    body: string,
    { isRefused = false, isNearMemoryLimit = false, keeps = NONE } = {},
  ): { body: string; leftOut: number } {
    if (body.length <= (isNearMemoryLimit || isRefused ? SMALL_BODY_BYTES : LONGEST_KEPT_CHARS))
      return { body, leftOut: 0 };
    const list = isRefused ? undefined : parseJson(body);
    const instances = isObject(list) ? list['instances'] : undefined;
    if (!isObject(list) || !Array.isArray(instances)) return beginningOf(body);
    const kept = this.#keptOf(instances, isNearMemoryLimit ? 0 : LONGEST_KEPT_CHARS, keeps);
    return {
      body: JSON.stringify(isNearMemoryLimit ? { instances: kept } : { ...list, instances: kept }),
      leftOut: instances.length - kept.length,
    };
  }

  #keptOf(instances: readonly unknown[], charsOfOthers: number, { isKept, atMost }: Kept): unknown[] {
    let left = charsOfOthers;
    let named = 0;
    return instances.filter((instance, index) => {
      if (this.#isOwn(instance)) return true;
      if (named < atMost && isObject(instance) && isKept(instance)) {
        named++;
        return true;
      }
      if (index >= OTHERS_KEPT || left <= 0) return false;
      left -= JSON.stringify(instance).length;
      return left >= 0;
    });
  }

  #isOwn(instance: unknown): boolean {
    return (
      this.#ids.has(stringField(instance, 'id') ?? '') || this.#isOwnName(stringField(instance, 'name') ?? '')
    );
  }
}

/** The result is never valid JSON. It is a copy, since a slice would keep the whole string in memory. */
function beginningOf(body: string): { body: string; leftOut: number } {
  if (body.length <= SMALL_BODY_BYTES) return { body, leftOut: 0 };
  const beginning = Buffer.from(`${body.slice(0, SMALL_BODY_BYTES)}…`).toString();
  return { body: beginning, leftOut: body.length - SMALL_BODY_BYTES };
}
