import type { LeaseRecord } from './lease.ts';

/** Into how many ranges the work under one name is divided: no more processes than these share it. */
export const RANGES = 16;

/** The names of leases: of ranges, and of seats, by which the processes that share them know how many they are. */
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

/** The range of an id, by its last hexadecimal digit; 0 for an id that ends otherwise. */
export function rangeOf(id: string): number {
  const digit = Number.parseInt(id.at(-1) ?? '', 16);
  return Number.isNaN(digit) ? 0 : digit;
}

export interface Division {
  /** Names of leases to claim or renew. */
  wanted: string[];
  /** Ranges that this process has and others are to have. */
  surplus: number[];
  /** The others do not know of this process yet. */
  isNew: boolean;
  isAlone: boolean;
}

/**
 * What one of several processes has to have, so that each has its share: at most as many ranges as divided evenly, rounded
 * up. `taken`: the leases that are held, and those of `holder` that have run out. `leaving`: ranges that it hands over.
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
  // What is left already goes first.
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
