/** The most of a word's letters that may differ for it to have been meant. */
const TOLERATED_SHARE = 0.34;
const MOST_COMPARED = 1000;

/** The known word that was probably meant, or undefined where none is near. Case does not count. */
export function nearest(given: string, known: readonly string[]): string | undefined {
  const wanted = given.toLowerCase();
  const [best] = known
    .slice(0, MOST_COMPARED)
    .map((word) => ({ word, distance: distanceOf(wanted, word.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  if (best === undefined) return undefined;
  return best.distance <= Math.max(1, wanted.length * TOLERATED_SHARE) ? best.word : undefined;
}

/** Levenshtein's, of the first 100 letters. */
function distanceOf(a: string, b: string): number {
  const [from, to] = [a.slice(0, 100), b.slice(0, 100)];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
