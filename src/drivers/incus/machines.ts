import type { MachineFault, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Forward, Instance } from './api.ts';
import {
  endpointOf,
  isMissingPorts,
  readForwards,
  restoreEndpoint,
  showMachine,
  sweepForwards,
} from './endpoints.ts';
import { type Found, findMachine, noteIdentity } from './finder.ts';
import { type Identified, identifyAll, isTemporary } from './identity.ts';
import { areMoving, pathOf } from './operations.ts';
import type { MachineMethod, Platform } from './platform.ts';
import { fromPlatform, isRoot, isRunning, isStopped, isUnknown, mark, refOf } from './translate.ts';

export const getMachine: MachineMethod<'get'> = async (platform, ref) => {
  const found = await findMachine(platform, ref);
  switch (found.is) {
    case 'unknown': {
      const { reason, silent } = found;
      if (silent === undefined) return { answer: 'unknown', reason };
      return { answer: 'unknown', reason, hosts: await hostsBeside(platform, silent) };
    }
    case 'coming':
      return { answer: 'observed', value: { ref, power: 'building', createdAt: Date.parse(found.since) } };
    case 'ours':
      await restoreEndpoint(platform, found.instance);
      if (isRunning(found.instance)) await noteIdentity(platform, found.instance).catch(() => undefined);
      return {
        answer: 'observed',
        value: await showMachine(platform, found.instance, await isMoving(platform, found)),
      };
    case 'foreign':
    case 'absent':
      return { answer: 'gone', hosts: await hostsBeside(platform, found.silent) };
  }
};

/** Whether Incus is moving it. A move stops a running machine and starts it again, so nobody asked for that stop. */
async function isMoving(
  { api }: Platform,
  { instance, isMoving: isRenamed }: Extract<Found, { is: 'ours' }>,
): Promise<boolean> {
  return isRenamed || (isStopped(instance) && (await areMoving(api, [instance.name], /^Migrating/)));
}

/**
 * Lists the machines, without the instances of silent members. Their absence proves nothing, and `get` answers unknown
 * for them.
 */
export const listMachines: MachineMethod<'list'> = async (platform) => {
  const { api, instances: reader } = platform;
  const [{ instances, names, silent }, { answered }, forwards] = await Promise.all([
    reader.read({ state: true }),
    api.hosts(),
    readForwards(platform),
  ]);
  const known = identifyAll(instances.filter((one) => !(isUnknown(one) && silent.has(one.location))));
  const there = [...known].filter(([, { machine }]) => machine !== undefined);
  // A failure is retried at the next listing.
  void sweepForwards(platform, forwards, [...names, ...there.map(([ref]) => ref)], async (ref) => {
    const found = await findMachine(platform, ref);
    return found.is === 'absent' && found.silent.size === 0;
  }).catch(() => undefined);
  void restorePorts(
    platform,
    [...known.values()].flatMap(({ machine }) => machine ?? []),
    forwards,
  );
  const moving = await temporaryNames(platform, known);
  return {
    answer: 'listed',
    items: [...known.values()].flatMap(({ machine }) =>
      machine === undefined
        ? []
        : [
            {
              ...fromPlatform(machine, endpointOf(platform, machine, forwards), moving.has(machine.name)),
              ...faultOf(platform, machine),
            },
          ],
    ),
    copies: [...known].flatMap(([ref, { copies }]) =>
      copies.flatMap(({ name, location }) => (moving.has(name) ? [] : [{ ref, name, host: location }])),
    ),
    hosts: hostsOf(answered, silent),
  };
};

/**
 * Restores missing ports of running machines, such as after a move to another member. The next listing then shows
 * their endpoint.
 */
async function restorePorts(
  platform: Platform,
  machines: readonly Instance[],
  forwards: readonly Forward[],
): Promise<void> {
  for (const machine of machines)
    if (isMissingPorts(platform, machine, forwards))
      await getMachine(platform, refOf(machine)).catch(() => undefined);
}

async function temporaryNames(
  platform: Platform,
  known: ReadonlyMap<OwnerRef, Identified>,
): Promise<Set<string>> {
  const names = new Set<string>();
  for (const [ref, { machine, copies }] of known)
    for (const one of machine === undefined ? copies : [machine, ...copies])
      if (isTemporary(one) && (await areMoving(platform.api, [ref, one.name]))) names.add(one.name);
  return names;
}

export async function readConsole(platform: Platform, ref: OwnerRef): Promise<string> {
  const found = await findMachine(platform, ref);
  return found.is === 'ours' ? platform.api.client.text(`${pathOf(found.instance.name)}/console`) : '';
}

async function hostsBeside({ api }: Platform, silent: ReadonlySet<string>) {
  const { answered } = await api.hosts();
  return hostsOf(answered, silent);
}

function hostsOf(answered: readonly string[], silent: ReadonlySet<string>) {
  return { answered: answered.filter((name) => !silent.has(name)), silent: [...silent] };
}

/** Storage drivers that always report the use of a container's disk, unless it is not there. */
const MEASURED: ReadonlySet<string> = new Set(['btrfs']);

/** A problem of a listed machine that does not stop it. Its pool is that of the last count of free units. */
function faultOf({ fleet }: Pick<Platform, 'fleet'>, instance: Instance): { fault?: MachineFault } {
  const { name, location, type, config, state } = instance;
  if (isUnknown(instance))
    return {
      fault: {
        finding: `Incus shows ${name} in the state Error`,
        remedy: `See incus info --show-log ${name} and the log of incusd. The instance keeps its status.`,
      },
    };
  const [device, root] = Object.entries(instance.expanded_devices).find(([, one]) => isRoot(one)) ?? [];
  const poolName = root?.['pool'] ?? '';
  const pool = fleet.poolAt(location, poolName);
  const isMade = config[mark.phase] !== undefined;
  if (device === undefined || pool === undefined || !isMade) return {};
  if (pool.problem !== undefined)
    return {
      fault: {
        finding: `its storage pool ${poolName} on ${location} is ${pool.problem}: the machine cannot write`,
        remedy:
          'Free space below the pool, then follow docs/runbook.md ("A storage pool is full or read-only").',
      },
    };
  const isLost = type === 'container' && MEASURED.has(pool.driver) && state?.disk && !(device in state.disk);
  if (!isLost) return {};
  return {
    fault: {
      finding: `its disk in the pool ${poolName} is missing`,
      remedy: isRunning(instance)
        ? 'Copy its data from inside the guest while it runs: a stop loses the data. Berth does not stop it.'
        : `Restore its subvolume containers/${name} in the pool, or delete the instance: Incus does not start it.`,
    },
  };
}
