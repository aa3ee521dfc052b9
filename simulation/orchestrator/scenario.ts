import type { Chance } from '../kernel/chance.ts';
import { drawHostTraits, drawTraits, type Traits } from './platform/traits.ts';

/** How often each fault happens between a replica and its database, for each call. */
export interface StoreTrouble {
  unavailable: number;
  /** The transaction is committed, and the answer lost. */
  unknownOutcome: number;
  /** The process dies in the middle of a transaction. */
  death: number;
}

export const noTrouble: StoreTrouble = { unavailable: 0, unknownOutcome: 0, death: 0 };

/** What is drawn of the servers once from the seed, before the run begins. */
export interface ServerScenario {
  replicas: number;
  trouble: StoreTrouble;
  /** The share of replies that are lost on the wire. */
  lostReplies: number;
  /** The mean pause between two commands, in milliseconds. */
  paceMs: number;
  leaseS: number;
  watchIntervalS: number;
  probeIntervalS: number;
  /** For how long tombstones are kept. */
  tombstonesKeptS: number;
  /**
   * For how long the machine of an instance that failed is kept for the operator; 0: it is removed at once. Null: what a failed
   * create made is removed at once, and what failed later is kept until its DELETE.
   */
  heldFailuresS: number | null;
  /** For how long the unit of a lost instance is not sold. */
  lostClaimsHeldS: number;
  /** What becomes of a machine that no row owns. */
  orphans: 'log' | 'reap';
  /** For how long the disks of an instance that ended by itself are kept after its DELETE. */
  disksKeptS: number;
}

/** What is drawn once from the seed, before the run begins. */
export interface Scenario extends ServerScenario {
  traits: Traits;
  /** The share of driver calls that go wrong besides outages. */
  callFaultRate: number;
  faultRates: FaultRates;
  /** How often the operator sets a cordon or takes one back, for each command. */
  cordonRate: number;
  /** Whether no server and no store ever fails. */
  hasSoundServers: boolean;
}

/** The scenario of a run on a platform of several hosts. What lies about all of it says nothing of its hosts. */
export function withHosts(drawn: Scenario, chance: Chance): Scenario {
  const traits = { ...drawn.traits, ...drawHostTraits(chance), hosts: chance.pick([2, 3]) };
  return { ...drawn, traits, faultRates: { ...drawn.faultRates, revokedCredential: 0 } };
}

/**
 * The scenario of a run with two platforms of hosts. In half of the seeds the servers and their store are sound, so that nothing
 * but the other platform's trouble could harm what is on the sound one.
 */
export function withTwoPlatforms(drawn: Scenario, chance: Chance): Scenario {
  const traits = { ...drawn.traits, ...drawHostTraits(chance.fork('hosts')) };
  const scenario = { ...drawn, traits };
  const cordon = traits.counts === 'not' ? 0 : 0.03;
  const rates = {
    ...drawn.faultRates,
    outage: 0.02,
    revokedCredential: 0.01,
    wrongPlatform: 0,
    cordon,
  };
  if (chance.happens(0.5))
    return { ...scenario, faultRates: rates, callFaultRate: 0.3, hasSoundServers: false };
  const none = { crash: 0, powerCut: 0, pause: 0, partition: 0, clockJump: 0 };
  return {
    ...scenario,
    faultRates: { ...rates, ...none },
    callFaultRate: 0.3,
    trouble: noTrouble,
    hasSoundServers: true,
  };
}

/** How often each fault is injected, for each command, at a severity of 1. */
const FAULT_RATES = {
  crash: 0.01,
  powerCut: 0.003,
  pause: 0.008,
  partition: 0.006,
  clockJump: 0.005,
  outage: 0.006,
  revokedCredential: 0.003,
  reclaim: 0.008,
  reap: 0.006,
  powerOff: 0.006,
  suspend: 0.006,
  breakDown: 0.002,
  loss: 0.002,
  move: 0.003,
  wrongPlatform: 0.001,
  /** Hosts are cordoned or added, where the platform counts what there is. */
  cordon: 0,
};
export type FaultRates = Record<keyof typeof FAULT_RATES, number>;

/** The same rates at another severity. */
export function times<Name extends string>(
  rates: Record<Name, number>,
  severity: number,
): Record<Name, number> {
  const entries = Object.entries<number>(rates).map(([name, rate]) => [name, rate * severity]);
  return Object.fromEntries(entries);
}

/** A tenth of the seeds have no faults: they show what frequent faults would hide. */
export function drawScenario(chance: Chance): Scenario {
  const isCalm = chance.happens(0.1);
  const severity = isCalm ? 0 : chance.pick([0.5, 1, 1, 2]);
  return {
    replicas: chance.pick([1, 1, 2, 2, 3]),
    traits: drawTraits(chance),
    callFaultRate: isCalm ? 0 : chance.pick([0.1, 0.2, 0.3, 0.5]),
    trouble: {
      unavailable: 0.0008 * severity,
      unknownOutcome: 0.001 * severity,
      death: 0.0004 * severity,
    },
    faultRates: times(FAULT_RATES, severity),
    lostReplies: isCalm ? 0 : 0.03,
    paceMs: chance.pick([1_000, 3_000, 9_000]),
    leaseS: chance.pick([15, 30]),
    watchIntervalS: chance.pick([10, 20]),
    probeIntervalS: chance.pick([2, 5]),
    tombstonesKeptS: chance.fork('retention').pick([20, 60, 300]),
    heldFailuresS: chance.fork('hold').pick([0, null, null, 60, 900]),
    lostClaimsHeldS: chance.fork('lost claims').pick([0, 60, 600]),
    orphans: 'reap',
    disksKeptS: chance.fork('kept disks').pick([0, 60, 1_800]),
    cordonRate: chance.fork('cordons').pick([0, 0, 0.01, 0.03]),
    hasSoundServers: false,
  };
}
