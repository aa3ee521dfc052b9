const STEPS: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 };

/** Whether objects and arrays stand in each other deeper than `most`. One pass, whatever the text is. */
export function isNestedDeeper(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isInString && character === '\\') at++;
    else if (character === '"') isInString = !isInString;
    else if (!isInString) depth += STEPS[character ?? ''] ?? 0;
    if (depth > most) return true;
  }
  return false;
}
