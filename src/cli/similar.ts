/** How many letters may differ, as a share of the word. */
const MOST_DIFFERENT = 0.4;

/** A hint such as `(Did you mean ONLINE?)`; empty if no candidate is like the word. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const given = word.toLowerCase().slice(0, 64);
  const distances = candidates.map((one) => distanceOf(given, one.toLowerCase()));
  const least = Math.min(...distances);
  if (least > Math.max(1, Math.floor(given.length * MOST_DIFFERENT))) return '';
  const nearest = candidates.filter((_one, index) => distances[index] === least);
  return `(Did you mean ${nearest.join(' or ')}?)`;
}

/** The number of letters to insert, remove or replace, or of neighbours to swap. */
function distanceOf(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const next = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = last;
    last = next;
  }
  return last[to.length] ?? 0;
}
