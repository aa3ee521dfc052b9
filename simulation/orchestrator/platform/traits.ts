import type { DriverManifest } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../../kernel/chance.ts';
import { catalog } from '../catalog.ts';

/** What kind of platform a run has. Durations in milliseconds. */
export interface Traits {
  manifest: DriverManifest;
  /** Whether the platform can tell a machine's host key, so that no probe has to pin it. */
  tellsHostKeys: boolean;
  bootMs: [number, number];
  bootFailureRate: number;
  sshNeverRate: number;
  /** A machine cannot be destroyed before it is this old. */
  leastReservationMs: number;
  /** Whether removing a machine that is gone is an error. */
  refusesTheGone: boolean;
  /** Whether a machine that is being built answers "locked" to a removal. */
  locksWhileBuilding: boolean;
  /** Whether a stopped machine loses its address. */
  addressesChange: boolean;
  /** For how long after a start the platform still shows the old address. */
  staleAddressMs: number;
  /** Whether attachment records outlive their machine. */
  recordsLinger: boolean;
  /** How many hosts it has that may be silent by themselves; 0: it answers as one. */
  hosts: number;
  /** Whether it counts its free units, and how. */
  counts: 'not' | 'unnamed' | 'named';
  /** How many calls of a create make a machine. */
  createCalls: number;
  /** How often one of these makes no part of it. */
  partRefusalRate: number;
  /** Offers whose stopped machines give their unit back. */
  releasesUnits: ReadonlySet<string>;
}

export function drawTraits(chance: Chance): Traits {
  const keepsNotes = chance.happens(0.7);
  const isSlow = chance.happens(0.2);
  const tellsHostKeys = chance.happens(0.5);
  return {
    manifest: {
      name: 'simulated',
      stop: true,
      resume: !chance.happens(0.1),
      restart: !chance.happens(0.1),
      attachVolume: chance.happens(0.5) ? 'hot' : 'cold',
      resizeVolume: chance.fork('resize').weighted({ attached: 4, detached: 4, none: 1 }),
      createVisibleWithinMs: chance.happens(0.5) ? 0 : chance.whole(1, 8) * 1_000,
      keepsNotes,
      cloudInitBytes: 64 * 1024,
    },
    tellsHostKeys,
    bootMs: isSlow ? [10_000, 80_000] : [500, 15_000],
    bootFailureRate: chance.happens(0.5) ? 0.05 : 0,
    sshNeverRate: chance.happens(0.3) ? 0.1 : 0,
    leastReservationMs: chance.happens(0.15) ? 900_000 : 0,
    refusesTheGone: chance.happens(0.5),
    locksWhileBuilding: chance.happens(0.3),
    addressesChange: chance.happens(0.7),
    // Nobody could notice an old address without a host key.
    staleAddressMs: tellsHostKeys && chance.happens(0.7) ? 8_000 : 0,
    recordsLinger: chance.happens(0.4),
    hosts: 0,
    counts: 'not',
    createCalls: 1,
    partRefusalRate: 0,
    releasesUnits: new Set(
      [...catalog.offers.values()].filter(({ onStop }) => onStop === 'release').map(({ id }) => id),
    ),
  };
}

/** What a platform of hosts has besides: it counts what they have room for, and makes a machine in several calls. */
export function drawHostTraits(chance: Chance): Pick<Traits, 'counts' | 'createCalls' | 'partRefusalRate'> {
  return {
    counts: chance.weighted({ not: 1, unnamed: 2, named: 2 }),
    createCalls: chance.pick([1, 2, 4]),
    partRefusalRate: chance.pick([0, 0.05, 0.2]),
  };
}
