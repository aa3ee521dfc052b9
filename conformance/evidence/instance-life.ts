import type { Exchange } from '../transcript/records.ts';
import { isSuccess, statusOf } from '../wire/json.ts';
import { type InstanceTimeline, isBefore, type Sighting } from './instance-timeline.ts';

/** `Within seconds`: less than the contract's shortest poll interval. */
export const FRESH_MS = 10_000;

/** The first DELETE that the target took on: answered with success, or with 404. */
export function destruction({ deletes }: InstanceTimeline): Exchange | undefined {
  return deletes.find((exchange) => isSuccess(exchange) || statusOf(exchange) === 404);
}

/** Whether an exchange was over before anyone had asked for the instance's end, and before it showed one by itself. */
export function isInItsLife(timeline: InstanceTimeline, exchange: Exchange): boolean {
  const [firstDelete] = timeline.deletes;
  if (firstDelete !== undefined && !isBefore(exchange, firstDelete)) return false;
  if (timeline.reclaimed !== undefined && !isBefore(exchange, timeline.reclaimed)) return false;
  return !timeline.sightings.some(
    (other) => isEnd(other.status) && other.exchange !== exchange && !isBefore(exchange, other.exchange),
  );
}

/** Statuses after which a 404 is lawful. */
export function isEnd(status: string): boolean {
  return status === 'DESTROYING' || status === 'DESTROYED';
}

/** The polled reads, in the order of sending. */
export function reads({ sightings }: InstanceTimeline): Sighting[] {
  return sightings.filter(({ source }) => source === 'get');
}

/** Each two sightings that follow one another without overlapping in time. */
export function pairs(sightings: readonly Sighting[]): [Sighting, Sighting][] {
  return sightings.flatMap((after, index): [Sighting, Sighting][] => {
    const before = sightings
      .slice(0, index)
      .findLast((earlier) => isBefore(earlier.exchange, after.exchange));
    return before === undefined ? [] : [[before, after]];
  });
}

/** Milliseconds as a person reads them. */
export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
