import { Hosts } from '../../../src/platform-model/platform.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Journal } from '../../kernel/journal.ts';
import { SOUND_PLATFORM } from '../catalog.ts';
import { CallFaults } from './call-faults.ts';
import type { CountObserver, Reach } from './driver.ts';
import { HostCapacity } from './host-capacity.ts';
import { type CallObserver, Network } from './network.ts';
import {
  type Addresses,
  type Machines,
  type PlatformObserver,
  simulatedPlatform,
  type Volumes,
} from './platform.ts';
import type { Traits } from './traits.ts';

/** A platform of a run: its true machines and volumes, the way to it, and what goes wrong there. */
export interface Site extends Reach {
  callFaults: CallFaults;
  capacity: HostCapacity;
}

interface Parts {
  scheduler: Scheduler;
  journal: Journal;
  observer: PlatformObserver & CallObserver & CountObserver;
  /** The offers whose machines it makes. */
  offerIds: readonly string[];
  addresses: Addresses;
  traits: Traits;
  callFaults: CallFaults;
  /** What the platform draws about machines, volumes and calls. */
  chances: { machines: Chance; volumes: Chance; network: Chance };
}

export function makeSite({ callFaults, chances, addresses, offerIds, ...parts }: Parts): Site {
  const { scheduler, journal, observer, traits } = parts;
  const capacity = new HostCapacity(offerIds);
  const { machines, volumes } = simulatedPlatform(
    { scheduler, traits, capacity, observer, chance: chances.machines, volumeChance: chances.volumes },
    addresses,
  );
  const names = Array.from({ length: traits.hosts }, (_, index) => `n${index + 1}`);
  const network = new Network({ scheduler, journal, observer, faults: callFaults, chance: chances.network });
  return {
    machines,
    volumes,
    ...(names.length > 0 && { hosts: new Hosts(machines, names) }),
    network,
    observer,
    scheduler,
    traits,
    capacity,
    callFaults,
    chance: chances.machines,
  };
}

/** The second platform of a run: nothing ever goes wrong there, so that all that does is the other one's. */
export function makeSoundSite(chance: Chance, parts: Omit<Parts, 'callFaults' | 'chances'>): Site {
  const of = (what: string): Chance => chance.fork(`${what} of ${SOUND_PLATFORM}`);
  const { traits } = parts;
  const callFaults = new CallFaults(parts.scheduler, of('faults'), 0, () => false);
  return makeSite({
    ...parts,
    callFaults,
    chances: { machines: of('machines'), volumes: of('volumes'), network: of('network') },
    traits: {
      ...traits,
      bootMs: [500, 8_000],
      bootFailureRate: 0,
      sshNeverRate: 0,
      leastReservationMs: 0,
      partRefusalRate: 0,
      counts: traits.counts === 'not' ? 'not' : 'named',
    },
  });
}

/** What there is on all of them. */
export type AllMachines = Pick<Machines, 'all' | 'of'>;
export type AllVolumes = Pick<Volumes, 'all' | 'holders'>;

export function allMachines(sites: Iterable<Site>): AllMachines {
  const each = [...sites];
  return {
    all: () => each.flatMap(({ machines }) => [...machines.all()]),
    of: (ref) => each.flatMap(({ machines }) => [...machines.of(ref)]),
  };
}

export function allVolumes(sites: Iterable<Site>): AllVolumes {
  const each = [...sites];
  return {
    all: () => each.flatMap(({ volumes }) => [...volumes.all()]),
    holders: (ref) => each.flatMap(({ volumes }) => [...volumes.holders(ref)]),
  };
}
