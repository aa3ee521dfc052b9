import type { RunRecord } from '../transcript/records.ts';

/** What the way to the target takes of each answer's time: the shortest TCP connection; 0 where it is not known. */
export function roundTripMs({ roundTripsMs }: RunRecord): number {
  return roundTripsMs.length === 0 ? 0 : Math.min(...roundTripsMs);
}
