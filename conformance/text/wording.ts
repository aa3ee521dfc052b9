import { printable } from './printable.ts';

/** An untrusted value as JSON for a sentence, truncated. */
export function shortJson(value: unknown, maxLength = 60): string {
  return printable(JSON.stringify(value) ?? 'nothing', maxLength);
}

/** The items in a sentence, e.g. `a, b and 3 more`. */
export function listed(items: readonly string[], most = 4): string {
  const rest = items.length - most;
  if (rest > 0) return `${items.slice(0, most).join(', ')} and ${rest} more`;
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

/** Durations from here on are in minutes: 59.95 s rounds to 60.0 s, a minute. */
export const LONG_MS = 59_950;

/** A duration in readable form: `340 ms`, `10 s`, `12.4 s`, `3 min 05 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < LONG_MS) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** The largest share of letters that may differ in a likely typo. */
const TOLERATED_SHARE = 0.34;
const MOST_COMPARED = 1000;

/** The known word that is closest to `given`, or undefined if none is close. Ignores case. */
export function closestMatch(given: string, known: readonly string[]): string | undefined {
  const wanted = given.toLowerCase();
  const [best] = known
    .slice(0, MOST_COMPARED)
    .map((word) => ({ word, distance: distanceOf(wanted, word.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  if (best === undefined) return undefined;
  return best.distance <= Math.max(1, wanted.length * TOLERATED_SHARE) ? best.word : undefined;
}

/** Levenshtein distance of the first 100 letters. */
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

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENAMETOOLONG: 'the name is too long',
};

/** Words the reason of a system error. */
export function systemErrorText(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (code || (error instanceof Error ? error.message : String(error)));
}
