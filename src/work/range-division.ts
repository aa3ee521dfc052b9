import type { LeaseRecord } from './lease.ts';

/** Number of ranges per name, and so the most processes that can share the work. */
export const RANGES = 16;

/** Names of leases. Each process holds one seat, so that the processes can count each other. */
export interface RangeNames {
  ranges: readonly string[];
  seats: readonly string[];
  all: readonly string[];
}

export function namesOf(name: string): RangeNames {
  const numbers = Array.from({ length: RANGES }, (_, number) => number);
  const ranges = numbers.map((number) => `${name}:${number}`);
  const seats = numbers.map((number) => `${name}:server:${number}`);
  return { ranges, seats, all: [...ranges, ...seats] };
}

/** The range of an id: its last hexadecimal digit, or 0 if the id ends in another character. */
export function rangeOf(id: string): number {
  const digit = Number.parseInt(id.at(-1) ?? '', 16);
  return Number.isNaN(digit) ? 0 : digit;
}

export interface Division {
  /** Names of leases to claim or renew. */
  wanted: string[];
  /** Ranges of this process to hand over to others. */
  surplus: number[];
  /** This process holds no seat yet, so the others do not count it. */
  isNew: boolean;
  isAlone: boolean;
}

/**
 * Decides which leases a process should hold: an even share of the ranges, rounded up. `taken`: the leases that are
 * held, and the expired ones of `holder`. `leaving`: ranges that it already hands over.
 */
export function divide(
  { ranges, seats }: RangeNames,
  taken: readonly Pick<LeaseRecord, 'name' | 'holder'>[],
  { holder, leaving }: { holder: string; leaving: ReadonlySet<number> },
): Division {
  const holders = new Map(taken.map((lease) => [lease.name, lease.holder]));
  const isMine = (name: string) => holders.get(name) === holder;
  const isFree = (name: string) => !holders.has(name);
  const seated = seats.flatMap((name) => holders.get(name) ?? []);
  const processes = new Set([holder, ...seated]).size;
  const share = Math.ceil(ranges.length / processes);
  const numbers = [...ranges.keys()];
  const mine = numbers.filter((range) => isMine(ranges[range] ?? ''));
  // Ranges that are being handed over come last, so that they are the first in the surplus.
  const kept = mine.filter((range) => !leaving.has(range));
  const left = mine.filter((range) => leaving.has(range));
  const free = ranges.filter(isFree).slice(0, Math.max(0, share - mine.length));
  const seat = seats.find(isMine) ?? seats.find(isFree);
  return {
    wanted: [...ranges.filter(isMine), ...free, ...(seat === undefined ? [] : [seat])].toSorted(),
    surplus: [...kept, ...left].slice(share),
    isNew: !seats.some(isMine),
    isAlone: processes === 1,
  };
}
