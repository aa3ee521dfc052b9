import type { FreeUnits, HostShare, ObservedHost } from '../../../orchestrator/model/inventory.ts';
import type { HostRules } from '../../../platform-model/rules.ts';
import { listObstacles } from '../../kit/obstacles.ts';
import type { SimulatedCapacity } from '../options.ts';
import type { SimulatedMachine } from './records.ts';

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
export function hostRulesOf(pools: () => readonly SimulatedCapacity[]): HostRules<SimulatedMachine> {
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

const CORDONED = 'an operator has cordoned it in Berth';

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
