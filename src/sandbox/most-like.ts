/** Returns the most similar choice. Undefined: none shares a third of its characters. */
export function mostLike(text: string, choices: readonly string[]): string | undefined {
  const rated = choices
    .map((choice) => ({ choice, distance: editDistance(text, choice) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = rated;
  return best !== undefined && best.distance < (2 * text.length) / 3 ? best.choice : undefined;
}

/** The Levenshtein distance: the number of characters to insert, remove or replace. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
