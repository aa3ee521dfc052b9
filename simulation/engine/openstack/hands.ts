import type { HandsOn, Machine } from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import type { Fields } from './api.ts';
import type { Identity } from './identity.ts';
import type { Server } from './records.ts';
import type { Servers } from './servers.ts';

const PERSON = 'a person';
/** A person ends what was begun so much later. */
const LATER_MS: readonly [number, number] = [10_000, 400_000];

/** What else people ask of Nova: the action, and the one that ends it some time later. */
const DEEDS: Readonly<Record<string, readonly [action: string, undo?: string]>> = {
  stop: ['os-stop'],
  pause: ['pause', 'unpause'],
  suspend: ['suspend', 'resume'],
  shelve: ['shelve'],
  rescue: ['rescue', 'unrescue'],
  'reboot by hand': ['reboot'],
  'migrate without confirm': ['migrate', 'confirmResize'],
  lock: ['lock', 'unlock'],
  'reset to ERROR': ['os-resetState', 'reboot'],
};

/** What people do with `openstack`, as administrators. `credential` is the id of that of Berth. */
export function handsOn(servers: Servers, identity: Identity, credential: string) {
  const { cloud } = servers;
  /** Ends what was begun and is not ended yet. */
  const ends = new Set<() => void>();
  const find = ({ identity: id }: Machine): Server | undefined => cloud.servers.get(id);

  /** Tries until it can be done. */
  const later = (end: () => unknown): void => {
    let tries = 0;
    const attempt = (): void => {
      if (!ends.has(attempt)) return;
      if (end() === false && ++tries < 20) void cloud.sleep(30_000).then(attempt);
      else ends.delete(attempt);
    };
    ends.add(attempt);
    void cloud.sleep(cloud.chance.between(...LATER_MS)).then(attempt);
  };

  /** Asks Nova for an action, and some time later for the one that ends it. Returns whether it was accepted. */
  const act = (server: Server, name: string, args: Fields = {}, undo?: string): boolean => {
    if (!cloud.servers.has(server.id)) return false;
    try {
      servers.act(server, { [name]: args }, PERSON);
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
    cloud.observe(PERSON);
    if (undo !== undefined) later(() => act(server, undo));
    return true;
  };

  const change = (machine: Machine, how: (server: Server) => unknown): boolean => {
    const server = find(machine);
    if (server === undefined || how(server) === false) return false;
    cloud.observe(PERSON);
    return true;
  };

  const reset = (server: Server): void => {
    const { vmState, host, task, work, launchedAt } = server;
    if (vmState === 'paused') act(server, 'unpause');
    if (vmState === 'suspended') act(server, 'resume');
    const isFaulty = vmState === 'error' && launchedAt !== undefined;
    if (work !== undefined || (task === null && !isFaulty)) return;
    act(server, 'os-resetState', { state: host === undefined ? 'shelved_offloaded' : 'active' });
    if (!server.isRunning && host !== undefined) act(server, 'reboot');
  };

  return {
    /** Within its zone, which has one other host: live while it runs, else cold, and confirmed later. */
    move(machine, host) {
      const server = find(machine);
      const goal = cloud.computes.find(({ name }) => name === host);
      if (server?.host === undefined || goal === server.host || goal?.zone !== server.host.zone) return false;
      return server.isRunning ? act(server, 'os-migrateLive') : act(server, 'migrate', {}, 'confirmResize');
    },
    rename: (machine, name) => change(machine, (server) => Object.assign(server, { name })),
    /** `openstack server delete` where the cloud keeps it for a while; the function is `restore`. */
    undefine(machine) {
      const server = find(machine);
      const isKept = cloud.parts.reclaimMs !== undefined && server?.launchedAt !== undefined;
      if (!isKept || server.host === undefined || server.task !== null) return undefined;
      servers.remove(server, PERSON);
      const restore = (): void => {
        if (server.vmState === 'soft-delete') act(server, 'restore');
        else if (server.task === 'soft-deleting') void cloud.sleep(5_000).then(restore);
      };
      return restore;
    },
    /** A server with a copy of its disk and all of its metadata, shut off. Tags are not copied. */
    clone: (machine, name) =>
      change(machine, (server) => {
        if (server.disk === undefined) return false;
        const [disk, metadata] = [{ ...server.disk }, { ...server.metadata }];
        const copy: Server = { ...server, id: cloud.id(), name, disk, metadata, isCopy: true };
        Object.assign(copy, {
          mappings: [],
          tags: [],
          ports: [],
          createdAt: cloud.now,
          before: undefined,
          work: undefined,
        });
        servers.settle(copy, 'stopped');
        return cloud.servers.set(copy.id, copy);
      }),
    remove: (machine) => change(machine, (server) => servers.remove(server, PERSON, true)),
    protect(machine) {
      const server = find(machine);
      if (server === undefined || !act(server, 'lock')) return undefined;
      return () => void act(server, 'unlock');
    },
    refuse(zone, why) {
      cloud.refusing.set(zone, why);
      return () => void cloud.refusing.delete(zone);
    },
    powerOff: (machine) =>
      change(machine, (server) => {
        if (!server.isRunning || server.task !== null) return false;
        return servers.guestStopped(server);
      }),
    meddle(machine, chance) {
      const server = find(machine);
      if (server === undefined) return undefined;
      const { host } = server;
      const outages: Record<string, (isOut: boolean) => unknown> = {
        // The scheduler gives it nothing more.
        'disable the host': (isDisabled) => host && Object.assign(host, { isDisabled }),
        // Nova shows its servers in part, or leaves them out.
        'stop the cell': (isCellDown) => Object.assign(cloud, { isCellDown }),
        // Of Berth: its tokens end with it.
        'revoke the credential': (isRevoked) => identity.setRevoked(credential, isRevoked),
      };
      const deed = chance.pick([...Object.keys(DEEDS), ...Object.keys(outages)]);
      const outage = outages[deed];
      if (outage !== undefined) {
        outage(true);
        later(() => void outage(false));
        return deed;
      }
      const [action = '', undo] = DEEDS[deed] ?? [];
      // Nova cannot reboot one that has no host.
      if (undo === 'reboot' && host === undefined) return undefined;
      return act(server, action, { state: 'error' }, undo) ? deed : undefined;
    },
    /** An operator has seen the alarms: what was begun is ended, and what hangs is reset. */
    rest() {
      for (const end of [...ends]) end();
      for (const volume of cloud.volumes.values())
        if (/^error_/.test(volume.status)) volume.status = 'available';
      for (const server of cloud.servers.values()) reset(server);
    },
  } satisfies HandsOn & { rest(): void };
}
