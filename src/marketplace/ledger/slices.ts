import { DAY_MS } from '../../ports/clock.ts';
import type { MarketplaceOptions } from '../model/options.ts';

type SliceOptions = Pick<MarketplaceOptions['billing'], 'sliceMs'>;

const HOUR_MS = 3_600_000;
/** A little less than the time between two rounds of the billing job: the next one finds it due. */
export const NEXT_ROUND_MS = 29_000;

/**
 * When a slice of a segment is due next, after `at`: with `sliceMs` at its multiples; without it once an hour, and each
 * segment at a moment of its own, so that those of many are spread over the hour.
 */
export function nextSliceAt({ sliceMs }: SliceOptions, segmentId: string, at: number): number {
  const everyMs = sliceMs ?? HOUR_MS;
  const phaseMs = sliceMs === null ? phaseOf(segmentId) : 0;
  return (Math.floor((at - phaseMs) / everyMs) + 1) * everyMs + phaseMs;
}

/**
 * Up to when a segment is to be posted now: no further than `certain`. With `sliceMs` that is a multiple of it, so that
 * each process means the same slices.
 */
export function sliceEnd(
  options: SliceOptions,
  { id, postedUntil }: { id: string; postedUntil: number },
  certain: number,
  now: number,
): number {
  const { sliceMs } = options;
  if (sliceMs !== null) return Math.floor(certain / sliceMs) * sliceMs;
  return nextSliceAt(options, id, postedUntil) <= now ? certain : postedUntil;
}

/**
 * When the billing job looks at a segment next, once it was posted as far as is certain. A slice of the grid that is not
 * certain yet is put off by as long as its provider has been silent, and by a slice at most.
 */
export function nextLookAt(
  options: SliceOptions,
  { id, postedUntil }: { id: string; postedUntil: number },
  certain: number,
  now: number,
): number {
  const { sliceMs } = options;
  if (sliceMs === null) return nextSliceAt(options, id, now);
  const at = nextSliceAt(options, id, postedUntil);
  return at > now
    ? nextSliceAt(options, id, now)
    : now + Math.max(NEXT_ROUND_MS, Math.min(sliceMs, now - certain));
}

/** Where slices up to `until` end: each is of one UTC day, so that what a day took is exact. */
export function endsOfSlices(from: number, until: number): number[] {
  const ends: number[] = [];
  for (let midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS; midnight < until; midnight += DAY_MS)
    ends.push(midnight);
  return until > from ? [...ends, until] : [];
}

/** FNV-1a of the id, which spreads ids that differ in few characters. */
function phaseOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++)
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193) >>> 0;
  return hash % HOUR_MS;
}
