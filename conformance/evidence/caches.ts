/** How long the caches live whose chance of being missed is reported. */
const LIFETIMES_MS = [60_000, 30_000];
const PHASES = 240;

/** One change, and the reads that would have been judged had they shown what was before it. */
export interface Window {
  /** A copy that was made between these shows what was before the change. Milliseconds since the run's start. */
  oldFrom: number;
  oldUntil: number;
  readsAt: readonly number[];
}

/**
 * The chance that a cache which is filled anew every `lifetimeMs` shows nothing stale in any of the windows, for all
 * moments at which it may be filled.
 */
export function chanceOfMissing(windows: readonly Window[], lifetimeMs: number): number {
  let missed = 0;
  for (let phase = 0; phase < PHASES; phase++) {
    const offset = ((phase + 0.5) / PHASES) * lifetimeMs;
    const isStale = ({ oldFrom, oldUntil, readsAt }: Window): boolean =>
      readsAt.some((at) => {
        const filled = filledAt(at, offset, lifetimeMs);
        return filled >= oldFrom && filled < oldUntil;
      });
    if (!windows.some(isStale)) missed++;
  }
  return missed / PHASES;
}

/** When the copy was made that a read at that time is answered with. */
function filledAt(at: number, offset: number, lifetimeMs: number): number {
  return Math.floor((at - offset) / lifetimeMs) * lifetimeMs + offset;
}

/** The chances in words, for the reason of a verdict. `what` is what may be answered from a cache. */
export function missedCaches(what: string, windows: readonly Window[]): string {
  const chances = LIFETIMES_MS.map(
    (ms) => `${percent(chanceOfMissing(windows, ms))} if it lives ${ms / 1000} s`,
  );
  return `a cache of ${what} would have been missed with a chance of ${chances.join(', and of ')}`;
}

function percent(chance: number): string {
  if (chance === 0) return `less than ${round(100 / PHASES)} %`;
  return `${round(chance * 100)} %`;
}

const round = (value: number): string => value.toFixed(value < 1 ? 1 : 0);
