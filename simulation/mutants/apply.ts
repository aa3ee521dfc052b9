import type { Mutant } from './mutants.ts';

/** The source of `file` with the patches of the mutant. @throws {Error} if one is stale */
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
