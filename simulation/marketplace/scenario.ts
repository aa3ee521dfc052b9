import { defaultOptions, type MarketplaceOptions } from '../../src/marketplace/model/options.ts';
import type { Chance } from '../kernel/chance.ts';

/** How often each fault happens between a replica and its database, for each call. */
export interface MarketTrouble {
  unavailable: number;
  /** The transaction is committed, and the answer lost. */
  unknownOutcome: number;
  /** The call takes a while, and other calls come first. */
  stall: number;
  /** The process dies in the middle of a transaction. */
  death: number;
  /** The notification of a commit is lost. */
  lostSignal: number;
  /** The process stands still before it asks the database or a provider, and goes on where it was. */
  pause: number;
}

export const noTrouble: MarketTrouble = {
  unavailable: 0,
  unknownOutcome: 0,
  stall: 0,
  death: 0,
  lostSignal: 0,
  pause: 0,
};

/** What is drawn once from the seed, before the run begins. */
export interface MarketScenario {
  replicas: number;
  /** The share of calls to providers that go wrong besides outages. */
  callFaultRate: number;
  /** The share of replies to users that are lost on the wire. */
  lostReplies: number;
  trouble: MarketTrouble;
  /** The largest constant error of a server's clock, in milliseconds; 0: all clocks are right and stay so. */
  skewMs: number;
  /** The mean pause between two commands, in milliseconds. */
  paceMs: number;
  faultRates: MarketFaultRates;
  /** The first credit of each team. */
  creditMicroUsd: number;
  /** For how long a provider's list lacks what was made just now. */
  listLagMs: number;
  capacity: number;
  /** Providers refuse a change of a volume while another one is under way. */
  refusesOverlap: boolean;
  options: MarketplaceOptions;
}

/** How often each fault is injected, for each command. */
const FAULT_RATES = {
  crash: 0.04,
  powerCut: 0.01,
  clockJump: 0.02,
  volumeBreak: 0.01,
  pause: 0.04,
  outage: 0.03,
  /** A provider answers 404 for all our resources for a while, as for the key of another account. */
  denial: 0.02,
  reclaim: 0.05,
  blink: 0.05,
  break: 0.02,
  vanish: 0.02,
  reprice: 0.06,
  soldOut: 0.02,
  powerOff: 0.02,
};

export type MarketFaultRates = Record<keyof typeof FAULT_RATES, number>;

export function drawMarketScenario(chance: Chance): MarketScenario {
  const severity = chance.pick([0, 0.5, 1, 1, 2]);
  const faultRates = Object.fromEntries(
    Object.entries(FAULT_RATES).map(([name, rate]) => [name, rate * severity]),
  ) as MarketFaultRates;
  return {
    replicas: Number(chance.weighted({ 1: 3, 2: 5, 3: 2 })),
    callFaultRate: chance.pick([0, 0.03, 0.1, 0.25]),
    lostReplies: chance.pick([0, 0.1]),
    trouble: {
      unavailable: chance.pick([0, 0, 0.003]),
      unknownOutcome: chance.pick([0, 0, 0.005]),
      stall: chance.pick([0, 0.002, 0.02]),
      death: chance.pick([0, 0.000_3, 0.001]),
      lostSignal: chance.pick([0, 0, 0.2]),
      pause: chance.pick([0, 0, 0.000_5, 0.003]),
    },
    skewMs: chance.pick([0, 0, 2_000]),
    paceMs: chance.pick([3_000, 12_000, 40_000]),
    faultRates,
    creditMicroUsd: chance.pick([400_000, 5_000_000, 500_000_000]),
    listLagMs: chance.pick([0, 0, 5_000, 20_000]),
    capacity: chance.pick([1, 3, 100]),
    refusesOverlap: chance.happens(0.7),
    options: drawOptions(chance),
  };
}

/** Times are shorter than in production, so that more of them end in a run. */
function drawOptions(chance: Chance): MarketplaceOptions {
  return {
    ...defaultOptions,
    minimumRuntimeMinutes: chance.pick([0, 1, 3]),
    polling: {
      ...defaultOptions.polling,
      blinkMs: 90_000,
      sweepMs: 60_000,
      findCreateMs: 60_000,
      actionMs: 180_000,
      sshWindowMs: 120_000,
    },
    maxLosses: { share: 0.2, least: chance.pick([1, 2, 5]) },
    spending: { ...defaultOptions.spending, balanceForMs: 60_000 },
    billing: {
      ...defaultOptions.billing,
      sliceMs: chance.pick([10_000, 60_000, 3_600_000]),
      rollUp: chance.pick([
        { afterMs: 60_000, periodMs: 120_000 },
        { afterMs: 0, periodMs: 50_000 },
      ]),
      zeroBalance: {
        graceMs: 120_000,
        stoppedGraceMs: 300_000,
        volumes: { keepMs: 600_000, noticesMs: [240_000] },
      },
    },
  };
}
