import { isObject, parseJson, textField } from './json.ts';

/** A list that is longer is kept in part. */
const LONGEST_KEPT_CHARS = 1024 * 1024;
const STRANGERS_KEPT = 300;

/** Tells the instances that a run made from the others of the account. */
export class OwnInstances {
  readonly #namePrefix: string;
  readonly #ids = new Set<string>();

  constructor(namePrefix: string) {
    this.#namePrefix = namePrefix;
  }

  /** Of the answer to a create. */
  add(body: string): void {
    const id = textField(parseJson(body), 'id');
    if (id !== undefined) this.#ids.add(id);
  }

  /**
   * A list of instances as it is kept: of one with thousands, those of the run and the first of the others. `leftOut` is
   * how many are not in it.
   */
  inPart(body: string): { body: string; leftOut: number } {
    const list = body.length > LONGEST_KEPT_CHARS ? parseJson(body) : undefined;
    const instances = isObject(list) ? list['instances'] : undefined;
    if (!isObject(list) || !Array.isArray(instances)) return { body, leftOut: 0 };
    const kept = instances.filter((instance, index) => index < STRANGERS_KEPT || this.#isOwn(instance));
    return {
      body: JSON.stringify({ ...list, instances: kept }),
      leftOut: instances.length - kept.length,
    };
  }

  #isOwn(instance: unknown): boolean {
    return (
      this.#ids.has(textField(instance, 'id') ?? '') ||
      textField(instance, 'name')?.startsWith(this.#namePrefix) === true
    );
  }
}
