import type { Chance } from '../kernel/chance.ts';
import { drawTraits, type Traits } from './platform/traits.ts';
import type { StoreTrouble } from './replicas/store.ts';

/** How often each of these happens, for each command. */
export interface Mishaps {
  crash: number;
  powerCut: number;
  pause: number;
  partition: number;
  clockJump: number;
  outage: number;
  revokedCredential: number;
  reclaim: number;
  reap: number;
  powerOff: number;
  breakDown: number;
  loss: number;
  move: number;
  wrongPlatform: number;
}

/** What a seed stands for: drawn once, before anything happens. */
export interface Scenario {
  replicas: number;
  traits: Traits;
  /** The share of driver calls that go wrong besides outages. */
  faultRate: number;
  trouble: StoreTrouble;
  mishaps: Mishaps;
  /** The share of replies that are lost on the wire. */
  lostReplies: number;
  /** The mean pause between two commands, in milliseconds. */
  paceMs: number;
  leaseS: number;
  watchIntervalS: number;
  probeIntervalS: number;
}

export const LEAST_GRACE_S = 60;

/** Some seeds are calm: what a storm hides shows there. */
export function drawScenario(chance: Chance): Scenario {
  const isCalm = chance.happens(0.1);
  const storm = isCalm ? 0 : chance.pick([0.5, 1, 1, 2]);
  return {
    replicas: chance.pick([1, 1, 2, 2, 3]),
    traits: drawTraits(chance),
    faultRate: isCalm ? 0 : chance.pick([0.1, 0.2, 0.3, 0.5]),
    trouble: {
      unavailable: 0.0008 * storm,
      unknownOutcome: 0.001 * storm,
      death: 0.0004 * storm,
    },
    mishaps: {
      crash: 0.01 * storm,
      powerCut: 0.003 * storm,
      pause: 0.008 * storm,
      partition: 0.006 * storm,
      clockJump: 0.005 * storm,
      outage: 0.006 * storm,
      revokedCredential: 0.003 * storm,
      reclaim: 0.008 * storm,
      reap: 0.006 * storm,
      powerOff: 0.006 * storm,
      breakDown: 0.002 * storm,
      loss: 0.002 * storm,
      move: 0.003 * storm,
      wrongPlatform: 0.001 * storm,
    },
    lostReplies: isCalm ? 0 : 0.03,
    paceMs: chance.pick([1_000, 3_000, 9_000]),
    leaseS: chance.pick([15, 30]),
    watchIntervalS: chance.pick([10, 20]),
    probeIntervalS: chance.pick([2, 5]),
  };
}
