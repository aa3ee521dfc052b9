import { parseJson } from '../text/json.ts';
import type { Excerpt } from './report.ts';

/** Limit of a body in the report: enough for an object of the contract with all its fields. */
const MAX_BODY_CHARACTERS = 4096;
/** JSON up to this length is indented. */
const MAX_INDENTED_CHARACTERS = 256 * 1024;

/** The first `maxLength` characters of a text; never splits a surrogate pair. */
export function toExcerpt(text: string, maxLength: number): Excerpt {
  if (text.length <= maxLength) return { text, more: 0 };
  const isHalved = /[\ud800-\udbff]/.test(text.charAt(maxLength - 1));
  const end = isHalved ? maxLength - 1 : maxLength;
  return { text: text.slice(0, end), more: text.length - end };
}

/** Truncates a sentence to `maxLength` characters, with an ellipsis. */
export function cut(text: string, maxLength: number): string {
  const { text: start, more } = toExcerpt(text, maxLength);
  return more === 0 ? start : `${start}… (${more} more characters)`;
}

/** The start of a body. JSON is indented and otherwise unchanged. */
export function toBodyExcerpt(body: string): Excerpt {
  const isJson = body.length <= MAX_INDENTED_CHARACTERS && parseJson(body) !== undefined;
  if (!isJson) return toExcerpt(body, MAX_BODY_CHARACTERS);
  const { text, rest } = indentJson(body, MAX_BODY_CHARACTERS);
  const { text: start, more } = toExcerpt(text, MAX_BODY_CHARACTERS);
  return { text: start, more: more + rest };
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;
const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * Indents valid JSON token by token, so that numbers, escapes and duplicate names stay as they were sent. Stops after
 * `maxLength` characters; `rest` counts the characters of `json` that are left.
 */
function indentJson(json: string, maxLength: number): { text: string; rest: number } {
  const tokens = json.matchAll(TOKENS);
  let text = '';
  let depth = 0;
  let previous = '';
  for (const { 0: token, index } of tokens) {
    if (text.length > maxLength) return { text, rest: json.length - index };
    const isClosing = token === '}' || token === ']';
    const isEmpty = isClosing && CLOSING[previous] === token;
    if (isClosing) depth--;
    const breaksLine = previous === ',' || previous in CLOSING || isClosing;
    if (breaksLine && !isEmpty) text += `\n${'  '.repeat(Math.min(depth, 40))}`;
    text += token === ':' ? ': ' : token;
    if (token in CLOSING) depth++;
    previous = token;
  }
  return { text, rest: 0 };
}
