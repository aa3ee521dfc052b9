/** Deeper than any document that is exchanged. What walks through JSON may end at some thousand levels. */
const DEEPEST = 200;

/** The JSON of another program. Undefined: it is none, or it is nested deeper than 200 levels. */
export function parseJson(text: string): unknown {
  try {
    return isNestedTooDeeply(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** In one pass over any text, which may be a listing of many megabytes: most of that is in strings. */
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

/** Where the string that begins at `start` has its other quote, or where the text ends. */
function endOfString(text: string, start: number): number {
  for (let at = start; ; ) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let before = at;
    while (text[before - 1] === '\\') before--;
    // An even number of backslashes are escaped by each other, and the quote is not.
    if ((at - before) % 2 === 0) return at;
  }
}
