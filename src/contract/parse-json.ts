/**
 * Deeper than any document that Berth exchanges. Recursion over JSON can overflow the stack at some thousand levels.
 */
const DEEPEST = 200;

/** Parses JSON of another program. Returns undefined if it is not JSON, or is nested deeper than 200 levels. */
export function parseJson(text: string): unknown {
  try {
    return isNestedTooDeeply(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Scans the text once and skips strings, which are most of a listing of many megabytes. */
export function isNestedTooDeeply(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at);
        break;
      case '[':
      case '{':
        if (++depth > DEEPEST) return true;
        break;
      case ']':
      case '}':
        depth--;
    }
  }
  return false;
}

/** Returns the index of the closing quote of the string that begins at `start`, or the text's length. */
function endOfString(text: string, start: number): number {
  for (let at = start; ; ) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let before = at;
    while (text[before - 1] === '\\') before--;
    // After an even number of backslashes, the quote is not escaped.
    if ((at - before) % 2 === 0) return at;
  }
}
