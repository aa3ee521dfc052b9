import type { YAMLParseError, YAMLWarning } from 'yaml';

/** A problem in the text of a YAML file, and its offset. */
interface YamlFault {
  offset: number;
  message: string;
}

/** Faults that do not affect the rest of the file. After any other fault, the rest is misread. */
const CONTAINED = new Set(['DUPLICATE_KEY', 'TAG_RESOLVE_FAILED', 'NON_STRING_KEY']);

/** Words the faults for the file's author. Faults after the first one that affects the rest are left out. */
export function toYamlFaults(errors: readonly (YAMLParseError | YAMLWarning)[]): YamlFault[] {
  const last = errors.findIndex(({ code }) => !CONTAINED.has(code));
  return (last < 0 ? errors : errors.slice(0, last + 1)).map(({ code, message, pos: [offset] }) => ({
    offset,
    message: inWords(code, message),
  }));
}

function inWords(code: string, message: string): string {
  if (message.startsWith('Missing closing')) return 'a quote before this place is never closed';
  const closing = /^Flow .* end with a (.)$/.exec(message)?.[1];
  if (closing !== undefined)
    return `a bracket before this place is never closed, or its ${closing} is indented too little`;
  if (code === 'MULTIPLE_DOCS') return 'expected one document, but a second one begins here: remove the ---';
  if (code === 'BLOCK_AS_IMPLICIT_KEY')
    return 'expected one "key: value" a line: quote a value that contains ": ", and indent a key like its siblings';
  if (code === 'MULTILINE_IMPLICIT_KEY' || message.startsWith('Implicit map keys'))
    return 'expected "key: value" on one line';
  if (code === 'NON_STRING_KEY') return 'expected a name as the key, got a list or a mapping';
  if (code === 'RESOURCE_EXHAUSTION') return 'it is nested too deeply here';
  if (code === 'BAD_SCALAR_START') return `${message}: put it in quotes`;
  return message;
}
