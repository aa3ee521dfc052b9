import { Fatal } from '../ports/errors.ts';

/** Characters that a shortened id has at least after its prefix, such as `inst-`. */
const SHORTEST = /^[a-z]+-\w{4,}$/;

/** Whether a text may be the beginning of an id, as tables show it. */
export function isShortId(text: string): boolean {
  return SHORTEST.test(text);
}

/**
 * The id that begins with the given text. A text that begins no id is returned unchanged.
 * @throws {Fatal} if several ids begin with it
 */
export function completeId(ids: readonly string[], given: string): string {
  if (ids.includes(given) || !isShortId(given)) return given;
  const found = ids.filter((id) => id.startsWith(given));
  if (found.length > 1)
    throw new Fatal(`${found.length} ids begin with ${given}: ${found.join(', ')}. Give more of it.`);
  return found[0] ?? given;
}
