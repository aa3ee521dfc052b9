import type { Bytes, HandsOn, Machine } from '../engine.ts';
import { type Cluster, EMPTY, type Instance, Interrupted, volumesOf } from './cluster.ts';
import { type InstanceApi, pathOf } from './instance-api.ts';

const PERSON = 'a person';

/** What people do with `incus`. */
export function handsOn(cluster: Cluster, api: InstanceApi): HandsOn {
  const { instances } = cluster;
  const byHand = (machine: Machine, act: (instance: Instance) => boolean): boolean => {
    const instance = instances.get(machine.name);
    const isDone = instance !== undefined && instance.busy === undefined && act(instance);
    cluster.observe(PERSON);
    return isDone;
  };
  return {
    move: (machine, host) =>
      byHand(machine, (instance) => {
        if (instance.member.name === host || volumesOf(cluster, instance).length > 0) return false;
        const resources = { instances: [pathOf(instance.name)] };
        cluster.begin('Migrating instance', instance.member, resources, (isStill) =>
          api.occupied(instance, 'migrate', () => migrate(cluster, api, instance, host, isStill)),
        );
        return true;
      }),
    rename: (machine, name) =>
      byHand(machine, (instance) => {
        if (instance.isRunning) return false;
        rename(cluster, instance, name);
        return true;
      }),
    undefine: (machine) => {
      const instance = instances.get(machine.name);
      const isDone = byHand(machine, (found) => {
        if (found.isRunning) return false;
        cluster.lost.add(found);
        return instances.delete(found.name);
      });
      if (!isDone || instance === undefined) return undefined;
      return () => {
        cluster.lost.delete(instance);
        if (!instances.has(instance.name)) instances.set(instance.name, instance);
        cluster.observe(PERSON);
      };
    },
    clone: (machine, name) =>
      byHand(machine, (instance) => {
        if (instance.disk === undefined) return false;
        const uuid = cluster.id();
        const config = { ...instance.config, 'volatile.uuid': uuid };
        const copy = { ...instance, uuid, config, isCopy: true, disk: { ...instance.disk } };
        api.switchOff(copy);
        instances.set(name, { ...copy, name, lastIp: undefined, last: Promise.resolve() });
        return true;
      }),
    remove: (machine) => byHand(machine, (instance) => instances.delete(instance.name)),
    protect: ({ identity }) => {
      // A move makes another record of it.
      const set = (isProtected: boolean): void => {
        for (const instance of instances.values())
          if (instance.uuid === identity) instance.isProtected = isProtected;
      };
      set(true);
      return () => set(false);
    },
    refuse(name, refusal) {
      const member = cluster.member(name);
      member.refusal = refusal;
      return () => void Object.assign(member, { refusal: undefined });
    },
    powerOff: (machine) =>
      byHand(machine, (instance) => {
        if (!instance.isRunning) return false;
        api.switchOff(instance);
        return true;
      }),
  };
}

/** `incus move --target`, as 6.0.4 does it: a copy by a temporary name, DELETE of the instance, rename of the copy. */
async function migrate(
  cluster: Cluster,
  api: InstanceApi,
  instance: Instance,
  host: string,
  isStill: () => void,
): Promise<void> {
  const { instances } = cluster;
  const { name, isRunning: wasRunning } = instance;
  const takes = async (...ms: [number, number]): Promise<void> => {
    await cluster.takes(...ms);
    isStill();
  };
  if (wasRunning) {
    await takes(5_000, 20_000);
    api.switchOff(instance);
    cluster.observe(PERSON);
  }
  await takes(500, 5_000);
  const disk: Bytes = { content: EMPTY };
  const moved: Instance = {
    ...instance,
    name: `move-of-${cluster.id()}`,
    member: cluster.member(host),
    disk,
    movedFrom: instance,
    lastIp: undefined,
    last: Promise.resolve(),
  };
  instances.set(moved.name, moved);
  cluster.observe(PERSON);
  try {
    await takes(10_000, 90_000);
    disk.content = instance.disk?.content ?? EMPTY;
    cluster.observe(PERSON);
    await takes(500, 5_000);
    instances.delete(name);
    instance.movedTo = moved;
    cluster.observe(PERSON);
    await takes(500, 30_000);
    if (!instances.has(name) && instances.has(moved.name)) rename(cluster, moved, name);
    if (wasRunning) await api.start(moved, isStill, PERSON);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  } finally {
    moved.busy = undefined;
  }
}

function rename({ instances }: Cluster, instance: Instance, name: string): void {
  instances.delete(instance.name);
  instance.name = name;
  instances.set(name, instance);
}
