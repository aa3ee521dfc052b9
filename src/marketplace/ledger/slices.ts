import { DAY_MS } from '../../ports/clock.ts';
import type { MarketplaceOptions } from '../model/options.ts';

type SliceOptions = Pick<MarketplaceOptions['billing'], 'sliceMs'>;

/** The next end of a slice: one every `sliceMs`, at an offset that depends on the id and spreads the work. */
export function nextSliceAt({ sliceMs }: SliceOptions, segmentId: string, at: number): number {
  const phaseMs = hashOf(segmentId) % sliceMs;
  return (Math.floor((at - phaseMs) / sliceMs) + 1) * sliceMs + phaseMs;
}

/** How far to post at `now`: up to `certain` once a slice is due. */
export function sliceEnd(
  options: SliceOptions,
  { id, postedUntil }: { id: string; postedUntil: number },
  certain: number,
  now: number,
): number {
  return nextSliceAt(options, id, postedUntil) <= now ? certain : postedUntil;
}

/** The ends of the slices up to `until`. Each slice lies in one UTC day, so that daily amounts are exact. */
export function endsOfSlices(from: number, until: number): number[] {
  const ends: number[] = [];
  for (let midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS; midnight < until; midnight += DAY_MS)
    ends.push(midnight);
  return until > from ? [...ends, until] : [];
}

/** FNV-1a of the id. It spreads ids that differ in few characters. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++)
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193) >>> 0;
  return hash;
}
