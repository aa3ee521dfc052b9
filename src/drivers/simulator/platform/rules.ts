import type { FreeUnits, HostShare, ObservedHost } from '../../../orchestrator/model/inventory.ts';
import type { DriverManifest, Endpoint } from '../../../orchestrator/model/platform-driver.ts';
import type { HostRules, PlatformRules } from '../../../platform-model/rules.ts';
import { generateHostKey } from '../../kit/host-key.ts';
import { CORDONED, listObstacles } from '../../kit/room.ts';
import { GUEST_ADDRESS, GUEST_USER } from '../guest/guest.ts';
import type { Draws, SimulatedCapacity, SimulatorBehavior } from '../options.ts';
import type { SimulatedMachine } from './state.ts';

/** Longest poll interval. */
const MAX_POLL_AFTER_MS = 1_000;
/** The default size limit of a request. A machine's disk could hold more. */
const CLOUD_INIT_BYTES = 1024 * 1024;

/** The rules of the configured platform. */
export function rulesOf(
  config: SimulatorBehavior,
  { capacity, draws }: { capacity: () => readonly SimulatedCapacity[]; draws: Draws },
): PlatformRules<SimulatedMachine> {
  const { volumeMs, reapStoppedAfterS: reapAfterS, reclaimSpotAfterS: reclaimAfterS } = config;
  const pools = (): SimulatedCapacity[] => poolsOf(capacity());
  const poolOf = (offerId: string, datacenter: string): SimulatedCapacity | undefined =>
    pools().find((pool) => pool.offerId === offerId && pool.datacenter === datacenter);
  const [restartMin, restartMax] = config.restartMs;
  return {
    manifest: manifestOf(config, 0),
    durations: {
      boot: config.bootMs,
      stop: config.stopMs,
      start: config.startMs,
      // Never zero: for a moment no guest answers, so that the restart is a new boot.
      restart: [Math.max(1, restartMin), Math.max(1, restartMax)],
      destroy: config.destroyMs,
      volume: { create: volumeMs, attach: volumeMs, detach: volumeMs, resize: volumeMs, destroy: volumeMs },
    },
    longestPollMs: MAX_POLL_AFTER_MS,
    units: (offerId, datacenter) => poolOf(offerId, datacenter)?.units,
    get places() {
      return pools().map(({ offerId, datacenter }) => ({ offerId, datacenter }));
    },
    hosts: hostRulesOf(pools),
    hasVolumes: (there) => capacity().some(({ datacenter }) => datacenter === there),
    bootFailureRate: config.bootFailureRate,
    ...(reapAfterS !== undefined && { reapStoppedAfterMs: reapAfterS * 1000 }),
    reclaimAfterMs({ offerId, datacenter }) {
      if (reclaimAfterS === undefined || !poolOf(offerId, datacenter)?.spot) return undefined;
      return [reclaimAfterS[0] * 1000, reclaimAfterS[1] * 1000];
    },
    make: ({ ref }) => newGuest(!draws.happens(`${ref}/ssh-never-up`, config.sshNeverUpRate)),
    endpoint: endpointOf,
  };
}

/** The capacity with the regions of a datacenter together. */
function poolsOf(capacity: readonly SimulatedCapacity[]): SimulatedCapacity[] {
  const parts = Map.groupBy(capacity, ({ offerId, datacenter }) => `${datacenter}/${offerId}`);
  return [...parts.values()].map((pool) => ({
    ...(pool[0] as SimulatedCapacity),
    units: pool.reduce((sum, { units }) => sum + units, 0),
    spot: pool.some(({ spot }) => spot),
  }));
}

/** The guest of a machine that has not booted yet. */
export function newGuest(sshListens: boolean) {
  const { privateKey, fingerprint } = generateHostKey();
  const sshHostKey = { privateKey, fingerprint };
  return { sshListens, sshPort: null, sshHostKey, cloudInitUntil: null, runcmdDone: 0 };
}

/** `createVisibleWithinMs`: see the port. */
export function manifestOf(
  { attachVolume }: Pick<SimulatorBehavior, 'attachVolume'>,
  createVisibleWithinMs: number,
): DriverManifest {
  return {
    name: 'simulator',
    stop: true,
    resume: true,
    restart: true,
    attachVolume,
    resizeVolume: attachVolume === 'hot' ? 'attached' : 'detached',
    createVisibleWithinMs,
    keepsNotes: true,
    volumeUsage: true,
    cloudInitBytes: CLOUD_INIT_BYTES,
    fences: true,
    marksWriter: true,
  };
}

/** The endpoint of a machine. Undefined if it has not booted yet. */
export function endpointOf(machine: SimulatedMachine): Endpoint | undefined {
  const { sshPort, sshHostKey } = machine;
  if (sshPort === null) return undefined;
  return {
    publicIp: GUEST_ADDRESS,
    privateIp: privateIpOf(machine),
    sshPort,
    sshUsername: GUEST_USER,
    portForwards: [{ internal_port: 22, external_port: sshPort }],
    hostKeyFingerprint: sshHostKey.fingerprint,
  };
}

/** The machine's address in the platform's network, unique in 10.0.0.0/8. */
function privateIpOf({ number }: Pick<SimulatedMachine, 'number'>): string {
  const hosts = 254;
  return `10.${64 + (Math.floor(number / (hosts * 256)) % 128)}.${Math.floor(number / hosts) % 256}.${1 + (number % hosts)}`;
}

const GPUS_PER_HOST = 8;
const VCPUS_PER_HOST = 512;
const HOSTS_PER_RACK = 4;

/** A host has slots, one for each unit of its offer. */
interface SimulatedHost {
  name: string;
  pool: SimulatedCapacity;
  slots: readonly number[];
}

/**
 * The hosts of a platform. Each holds units of one offer, as many as fit in 8 GPUs or 512 vCPUs. A host's name depends
 * only on its offer, datacenter and number, so that changes of other offers do not rename it.
 */
function hostRulesOf(pools: () => readonly SimulatedCapacity[]): HostRules<SimulatedMachine> {
  return {
    freeSlots({ offerId, datacenter, only, avoidHosts = [] }, machines) {
      const pool = pools().find((one) => one.offerId === offerId && one.datacenter === datacenter);
      const own = machines.filter(({ spec }) => spec.offerId === offerId && spec.datacenter === datacenter);
      const taken = new Set(own.flatMap(({ holdsUnit, slot }) => (holdsUnit ? slot : [])));
      // A stopped machine counts too: it starts again on the same host.
      const room = ({ name, slots }: SimulatedHost): number =>
        slots.length - own.filter((machine) => machine.host === name).length;
      return (pool === undefined ? [] : hostsOf(pool))
        .filter(({ name }) => (only ?? name) === name && !avoidHosts.includes(name))
        .sort((one, other) => room(other) - room(one))
        .flatMap(({ name, slots }) => slots.flatMap((slot) => (taken.has(slot) ? [] : { host: name, slot })));
    },
    report(free, machines, avoidHosts) {
      const hosts = pools().flatMap(hostsOf);
      const holders = Map.groupBy(
        machines.filter(({ holdsUnit }) => holdsUnit),
        ({ host }) => host,
      );
      return {
        free: free.map((count) => withReasons(count, hosts, avoidHosts)),
        hosts: hosts.map((host) => show(host, holders.get(host.name) ?? [], avoidHosts)),
      };
    },
  };
}

function hostsOf(pool: SimulatedCapacity): SimulatedHost[] {
  const { offerId, datacenter, units, size } = pool;
  const fit =
    size === undefined ? 1 : size.gpuCount > 0 ? GPUS_PER_HOST / size.gpuCount : VCPUS_PER_HOST / size.vcpus;
  const perHost = Math.max(1, Math.floor(fit));
  return Array.from({ length: Math.ceil(units / perHost) }, (_, nth) => {
    const rack = 1 + Math.floor(nth / HOSTS_PER_RACK);
    const first = nth * perHost;
    return {
      name: `${datacenter}-r${rack}-${offerId}-${nth + 1}`,
      pool,
      slots: Array.from({ length: Math.min(perHost, units - first) }, (_, slot) => first + slot),
    };
  });
}

function withReasons(
  count: FreeUnits,
  hosts: readonly SimulatedHost[],
  avoidHosts: readonly string[],
): FreeUnits {
  const { offerId, datacenter, units } = count;
  if (units > 0) return count;
  const own = hosts.filter(({ pool }) => pool.offerId === offerId && pool.datacenter === datacenter);
  const reasonOf = (name: string): string =>
    avoidHosts.includes(name) ? CORDONED : 'all its units are taken';
  return {
    ...count,
    obstacles: listObstacles(own.map(({ name: host }) => ({ host, reason: reasonOf(host) }))),
  };
}

/** `holders`: the machines that occupy its units. */
function show(
  { name, pool: { size }, slots }: SimulatedHost,
  holders: readonly SimulatedMachine[],
  avoidHosts: readonly string[],
): ObservedHost {
  const state = avoidHosts.includes(name)
    ? ({ state: 'closed', detail: CORDONED } as const)
    : ({ state: 'open' } as const);
  if (size === undefined) return { host: name, ...state };
  const share = (part: 'vcpus' | 'memoryGb' | 'rootDiskGb'): HostShare => ({
    total: slots.length * size[part],
    taken: holders.reduce((sum, { spec }) => sum + spec[part], 0),
  });
  const { gpuCount, gpuType: type = 'GPU' } = size;
  const devices = slots.flatMap((slot, nth) => {
    const ref = holders.find((machine) => machine.slot === slot)?.spec.ref;
    return Array.from({ length: gpuCount }, (_, gpu) => ({
      id: `gpu${nth * gpuCount + gpu}`,
      type,
      ...(ref === undefined ? ({ state: 'free' } as const) : ({ state: 'claimed', ref } as const)),
    }));
  });
  return {
    host: name,
    ...state,
    vcpus: share('vcpus'),
    memoryGb: share('memoryGb'),
    diskGb: share('rootDiskGb'),
    devices,
  };
}
