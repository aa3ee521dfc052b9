import type { Chance } from '../kernel/chance.ts';
import { type ServerScenario, times } from '../orchestrator/scenario.ts';
import type { ServerFault } from '../orchestrator/server-faults.ts';
import type { CommandFaultRates } from './commands.ts';

/**
 * - `refuse`, `full`, `readOnly`: a host refuses each create alike, or its pool takes no writes
 * - `freeze`: questions about one machine are not answered
 * - `takeOver`: a server with a copy of the database works on the platform
 */
const outages = ['refuse', 'full', 'readOnly', 'freeze', 'takeOver'] as const;
export type Outage = (typeof outages)[number];

/** What is drawn once from the seed, before the run begins. */
export interface EngineScenario extends ServerScenario {
  hosts: number;
  commandFaults: CommandFaultRates;
  serverFaults: Record<ServerFault, number>;
  /** How often the database loses the commits of the last minute, for each command of a client. */
  failOver: number;
  /** How often an older backup of it is restored. */
  restore: number;
  people: PeopleRates;
  /** What a person has to mend, if anything. */
  outage: Outage | undefined;
  /** How often a tenant writes something, for each command of a client. */
  writes: number;
}

/** What people do at the engine, how often for each command of a client. */
const PEOPLE = {
  move: 0.03,
  evacuate: 0.004,
  rename: 0.02,
  undefine: 0.01,
  clone: 0.01,
  remove: 0.005,
  powerOff: 0.01,
  /** A host answers nothing for a while. */
  silence: 0.02,
  /** What only some engines know, such as a server that is rescued or shelved. */
  meddle: 0.06,
  /** A machine's removal is refused. */
  protect: 0.02,
};
export type PeopleRates = Record<keyof typeof PEOPLE, number>;

/** A tenth of the seeds have no faults, and in a third nobody touches the engine. */
export function drawScenario(chance: Chance): EngineScenario {
  const isCalm = chance.happens(0.1);
  const severity = isCalm ? 0 : chance.pick([0.5, 1, 1, 2]);
  const hands = isCalm || chance.happens(0.33) ? 0 : chance.pick([0.5, 1, 2]);
  return {
    hosts: chance.pick([1, 2, 2, 3]),
    replicas: chance.pick([1, 2, 2, 3]),
    commandFaults: {
      before: 0.01 * severity,
      after: 0.02 * severity,
      late: 0.02 * severity,
      mute: 0.01 * severity,
      slow: 0.05 * severity,
      still: 0.02 * severity,
    },
    failOver: 0.002 * severity,
    restore: 0.001 * severity,
    serverFaults: {
      crash: 0.01 * severity,
      powerCut: 0.003 * severity,
      pause: 0.008 * severity,
      partition: 0.006 * severity,
      clockJump: 0.003 * severity,
    },
    people: times(PEOPLE, hands),
    outage:
      hands === 0 || chance.fork('has outages').happens(0.5)
        ? undefined
        : chance.fork('outage').pick(outages),
    writes: 0.5,
    trouble: {
      unavailable: 0.0008 * severity,
      unknownOutcome: 0.001 * severity,
      death: 0.0004 * severity,
    },
    lostReplies: isCalm ? 0 : 0.03,
    paceMs: chance.pick([1_000, 3_000, 9_000]),
    leaseS: chance.pick([30, 60]),
    watchIntervalS: chance.pick([10, 20]),
    probeIntervalS: chance.pick([2, 5]),
    tombstonesKeptS: chance.pick([600, 3_600]),
    heldFailuresS: chance.pick([0, null, null, 900]),
    lostClaimsHeldS: chance.pick([0, 60, 600]),
    orphans: 'log',
    disksKeptS: chance.pick([0, 60, 1_800]),
  };
}
