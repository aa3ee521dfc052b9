import { DAY_MS } from '../../ports/clock.ts';
import type { MarketplaceOptions } from '../model/options.ts';

type SliceOptions = Pick<MarketplaceOptions['billing'], 'sliceMs'>;

const HOUR_MS = 3_600_000;
/** A little less than the interval of the billing job, so that the next round finds the row due. */
const NEXT_ROUND_MS = 29_000;

/**
 * The next multiple of `sliceMs`. If it is null, segments have one slice an hour, at an offset that depends on the id
 * and spreads the work.
 */
export function nextSliceAt({ sliceMs }: SliceOptions, segmentId: string, at: number): number {
  const everyMs = sliceMs ?? HOUR_MS;
  const phaseMs = sliceMs === null ? phaseOf(segmentId) : 0;
  return (Math.floor((at - phaseMs) / everyMs) + 1) * everyMs + phaseMs;
}

/** The end of the next slice, at most `certain`. A multiple of `sliceMs`, so that all processes cut the same slices. */
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
 * When the billing job next processes a segment that is posted up to the certain time. If the provider is silent, the
 * job waits for as long as the silence has lasted, at most one slice.
 */
export function nextPostingAt(
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

/** The ends of the slices up to `until`. Each slice lies in one UTC day, so that daily amounts are exact. */
export function endsOfSlices(from: number, until: number): number[] {
  const ends: number[] = [];
  for (let midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS; midnight < until; midnight += DAY_MS)
    ends.push(midnight);
  return until > from ? [...ends, until] : [];
}

/** FNV-1a of the id. It spreads ids that differ in few characters. */
function phaseOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++)
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193) >>> 0;
  return hash % HOUR_MS;
}
