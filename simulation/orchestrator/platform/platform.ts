import type { Endpoint } from '../../../src/orchestrator/model/platform-driver.ts';
import { createPlatform, type Platform } from '../../../src/platform-model/platform.ts';
import type { MachineRecord } from '../../../src/platform-model/records.ts';
import type { Draws, Observer, PlatformRules } from '../../../src/platform-model/rules.ts';
import { failed } from '../../../src/platform-model/steps.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { HostCapacity } from './host-capacity.ts';
import type { Traits } from './traits.ts';

/** A machine of the simulation: its address, and what an SSH probe finds there. Times are virtual milliseconds. */
export interface Machine extends MachineRecord {
  ip: string | null;
  /** The address that the platform still shows after a start, until `staleUntil`. */
  staleIp: string | null;
  staleUntil: number;
  hostKey: string;
  /** Infinite: its SSH never answers. */
  sshReadyAt: number;
  diskId: string;
}

export type Machines = Platform<Machine>['machines'];
export type Volumes = Platform<Machine>['volumes'];

/** What the platform asks about the call that reaches it now, and whom it tells what happens. */
export interface PlatformObserver extends Omit<Observer<Machine>, 'refused'> {
  /** Whether it comes later than the manifest allows. */
  isLandingLate(): boolean;
  /** A call made no part of a machine, and none will. */
  partRefused(machine: Machine): void;
  /** For how many milliseconds the manifest lets a new resource stay hidden, counted from when the call was sent. */
  promiseLeftMs(): number;
}

export const SSH_PORT = 22;
const LEAST_ADDRESSES = 4;

/** A few public addresses, reused at once: the address of a dead machine soon belongs to another one. */
export class Addresses {
  readonly #free: string[] = [];
  #made = 0;

  take(): string {
    const free = this.#made < LEAST_ADDRESSES ? undefined : this.#free.pop();
    return free ?? `203.0.113.${++this.#made}`;
  }

  free(address: string | null): void {
    if (address !== null) this.#free.push(address);
  }
}

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  volumeChance: Chance;
  traits: Traits;
  capacity: HostCapacity;
  observer: PlatformObserver;
}

/** The true machines and volumes of a run, whatever its drivers show. */
export function simulatedPlatform(
  { scheduler, chance, volumeChance, traits, capacity, observer }: Parts,
  addresses: Addresses,
): Platform<Machine> {
  return createPlatform({
    clock: { now: () => scheduler.now },
    rules: rulesOf({ scheduler, chance, traits, capacity, observer }, addresses),
    machineDraws: drawsOf(chance),
    volumeDraws: drawsOf(volumeChance),
    observer,
  });
}

function drawsOf(chance: Chance): Draws {
  return {
    durationMs: (_name, [min, max]) => chance.between(min, max),
    happens: (_name, rate) => chance.happens(rate),
  };
}

function rulesOf(
  { scheduler, chance, traits, capacity, observer }: Omit<Parts, 'volumeChance'>,
  addresses: Addresses,
): PlatformRules<Machine> {
  return {
    manifest: traits.manifest,
    durations: {
      boot: traits.bootMs,
      stop: [500, 8_000],
      start: [1_000, 12_000],
      restart: [1_000, 12_000],
      destroy: [500, 9_000],
      volume: { create: [0, 6_000], resize: [0, 20_000] },
    },
    longestPollMs: 2_500,
    units: (offerId, datacenter) => capacity.units(offerId, datacenter),
    ...(traits.counts !== 'not' && { places: capacity.places, namesCounted: traits.counts === 'named' }),
    createCalls: () => traits.createCalls,
    refusePart: (machine) => {
      const refusal = refusalOf(chance, traits);
      if (refusal?.outcome === 'failed' && refusal.code === 'image_missing') observer.partRefused(machine);
      return refusal;
    },
    bootFailureRate: traits.bootFailureRate,
    holdsUnitStopped: ({ offerId }) => !traits.releasesUnits.has(offerId),
    restartPower: () => chance.pick(['stopping', 'starting'] as const),
    hiddenUpToMs: () => observer.promiseLeftMs(),
    findsHidden: () => observer.isLandingLate(),
    refusesTheGone: traits.refusesTheGone,
    refuseRemoval({ createdAt, power, until }) {
      const reservedMs = createdAt + traits.leastReservationMs - scheduler.now;
      if (reservedMs > 0)
        return failed('conflict', 'the reservation runs on', 'none', Math.min(reservedMs, 60_000));
      const isLocked = power === 'building' && until !== null && traits.locksWhileBuilding;
      return isLocked ? failed('transient', 'the server is locked') : undefined;
    },
    recordsLinger: traits.recordsLinger,
    isShareable: (type) => type !== 'single',
    make: () => ({
      ip: null,
      staleIp: null,
      staleUntil: 0,
      sshReadyAt: Number.POSITIVE_INFINITY,
      hostKey: `SHA256:${chance.bytes(32).toString('base64').replace(/=+$/, '')}`,
      diskId: chance.bytes(8).toString('hex'),
    }),
    up({ ip, staleIp }, at) {
      const address =
        ip === null
          ? { ip: addresses.take(), staleUntil: staleIp === null ? 0 : at + traits.staleAddressMs }
          : undefined;
      const isMute = chance.happens(traits.sshNeverRate);
      return { ...address, sshReadyAt: isMute ? Number.POSITIVE_INFINITY : at + chance.between(0, 6_000) };
    },
    down({ ip }) {
      if (!traits.addressesChange || ip === null) return {};
      addresses.free(ip);
      return { ip: null, staleIp: ip };
    },
    gone: ({ ip }) => addresses.free(ip),
    endpoint: (machine) => endpointOf(machine, scheduler.now, traits),
  };
}

/** Whether a part of a machine is not made: the next call may make it, or none can. */
function refusalOf(chance: Chance, { partRefusalRate }: Traits): ReturnType<typeof failed> | undefined {
  if (!chance.happens(partRefusalRate)) return undefined;
  if (chance.happens(0.8)) return failed('transient', 'the disk is busy');
  return failed('image_missing', 'the image is gone', chance.happens(0.5) ? 'none' : 'certain');
}

function endpointOf(machine: Machine, now: number, { tellsHostKeys }: Traits): Endpoint | undefined {
  const publicIp = now < machine.staleUntil ? machine.staleIp : machine.ip;
  if (publicIp === null || machine.power === 'building') return undefined;
  const endpoint = { publicIp, sshPort: SSH_PORT, sshUsername: 'ubuntu' };
  return tellsHostKeys ? { ...endpoint, hostKeyFingerprint: machine.hostKey } : endpoint;
}
