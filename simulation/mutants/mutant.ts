import type { Subject } from '../runner/subject.ts';

/** A change of production source that takes a protection away. `find` occurs exactly once in `file`. */
export interface Mutant {
  id: string;
  /** Which simulation finds it; default: that of the orchestrator. */
  subject?: Subject;
  /** What the program then does wrong. */
  title: string;
  patches: readonly { file: string; find: string; replace: string }[];
}

/** Returns the source of `file` with the patches of the mutant. @throws {Error} if a patch does not fit */
export function applyMutant({ id, patches }: Mutant, file: string, source: string): string {
  let text = source;
  for (const { file: patched, find, replace } of patches) {
    if (patched !== file) continue;
    const parts = text.split(find);
    if (parts.length !== 2)
      throw new Error(
        `mutant ${id}: what it replaces in ${file} is there ${parts.length - 1} times: ${find}`,
      );
    text = parts.join(replace);
  }
  return text;
}
