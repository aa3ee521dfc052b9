import { Lexer, type YAMLParseError, type YAMLWarning } from 'yaml';

/** A problem in the text of a YAML file, and its offset. */
interface YamlFault {
  offset: number;
  message: string;
}

/** Faults that do not affect the rest of the file. After any other fault, the rest is misread. */
const CONTAINED = new Set(['DUPLICATE_KEY', 'TAG_RESOLVE_FAILED', 'NON_STRING_KEY']);

/** Words the faults for the file's author. Faults after the first one that affects the rest are left out. */
export function toYamlFaults(text: string, errors: readonly (YAMLParseError | YAMLWarning)[]): YamlFault[] {
  const last = errors.findIndex(({ code }) => !CONTAINED.has(code));
  return (last < 0 ? errors : errors.slice(0, last + 1)).map((error) => toFault(text, error));
}

function toFault(text: string, { code, message, pos: [offset] }: YAMLParseError | YAMLWarning): YamlFault {
  const what = message.startsWith('Missing closing') ? 'quote' : 'bracket';
  const closing = /^Flow .* end with a (.)$/.exec(message)?.[1];
  const open = what === 'quote' || closing !== undefined ? findUnclosed(text, offset, what) : undefined;
  if (open !== undefined) {
    const indented = closing === undefined ? '' : `, or its ${closing} is indented too little`;
    return { offset: open, message: `this ${text.charAt(open)} is never closed${indented}` };
  }
  return { offset, message: inWords(code, message) };
}

function inWords(code: string, message: string): string {
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

/** Returns the offset of the last quote, or of the last bracket without its match, that begins before `end`. */
function findUnclosed(text: string, end: number, what: 'quote' | 'bracket'): number | undefined {
  const brackets: number[] = [];
  let quote: number | undefined;
  let offset = 0;
  let isPlain = false;
  for (const token of new Lexer().lex(text)) {
    // The lexer's own marks, which are not in the text. \x1f means that a plain scalar follows.
    if (token === '\x02' || token === '\x18' || token === '\x1f') {
      isPlain = token === '\x1f';
      continue;
    }
    if (offset >= end) break;
    if (!isPlain && /^["']/.test(token)) quote = offset;
    if (!isPlain && /^[[{]$/.test(token)) brackets.push(offset);
    if (!isPlain && /^[\]}]$/.test(token)) brackets.pop();
    isPlain = false;
    offset += token.length;
  }
  return what === 'quote' ? quote : brackets.at(-1);
}
