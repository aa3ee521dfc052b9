import { Refusal } from '../surroundings.ts';

import type { Cloud } from './cloud.ts';
import { EMPTY, type Phase, type Server, STATES, type Transition, type VmState } from './records.ts';
import type { Volumes } from './volumes.ts';

/** Tasks that have a status of their own, see nova/api/openstack/common.py. */
const STATUS_OF_TASK: readonly [task: RegExp, status: string, of: readonly VmState[]][] = [
  [/^reboot/, 'HARD_REBOOT', ['active']],
  [/^migrating$/, 'MIGRATING', ['active', 'paused']],
  [/^resize/, 'RESIZE', ['active', 'stopped']],
];

export function statusOf({ vmState, task }: Server): string {
  const own = STATUS_OF_TASK.find(([pattern, , of]) => of.includes(vmState) && pattern.test(task ?? ''));
  return own?.[1] ?? STATES[vmState].status;
}

function simple(
  name: string,
  from: readonly VmState[],
  task: string,
  to: VmState,
  isTakenUp = false,
): Transition {
  return { name, from, phases: [[task, 30_000]], to, isTakenUp };
}

/** What transitions do with servers beside what they set in them. */
export interface ServerWork {
  readonly cloud: Cloud;
  readonly volumes: Volumes;
  settle(server: Server, to: VmState): void;
  releaseParts(server: Server): void;
  guestStopped(server: Server): void;
  reclaimLater(server: Server): void;
  dissolve(server: Server): void;
}

/** The transitions of servers, see nova/compute/api.py and nova/compute/manager.py. */
export function transitionsOf(servers: ServerWork): readonly Transition[] {
  const { cloud, volumes } = servers;
  const mayFail = (why: string): void => {
    if (cloud.fails()) throw new Refusal(500, why);
  };
  const switchOff = (server: Server): unknown => Object.assign(server, { isRunning: false });
  const place = (server: Server): boolean => {
    server.host = cloud.schedule(server);
    return server.host !== undefined;
  };
  const placeFirst = (server: Server): void => {
    if (!place(server)) throw new Refusal(500, 'No valid host was found.');
  };
  const plug = ({ id, ports }: Server): void => {
    for (const port of ports.map((one) => cloud.ports.get(one))) {
      if (port?.device_id !== '') throw new Refusal(500, `Build of ${id} aborted: a port is gone or in use.`);
      port.device_id = id;
    }
    mayFail('failed to allocate the network(s), not rescheduling.');
  };
  const connect = ({ mappings }: Server): void => {
    for (const { volume, attachment } of mappings) volumes.complete(volume, attachment);
  };
  const spawn = (server: Server): void => {
    const refusal = cloud.refusing.get(server.host?.zone ?? '');
    if (refusal !== undefined) throw new Refusal(500, `Build of ${server.id} aborted: ${refusal}`);
    mayFail('Failed to provision instance');
    if (!server.isVolumeBacked) server.disk = { content: EMPTY };
    server.launchedAt = cloud.now;
  };
  /** To another host of its zone, if one has room. */
  const move = (server: Server): void => {
    server.host = cloud.schedule(server) ?? server.host;
  };
  const prepare = (server: Server): void => {
    server.before = { host: server.host, vmState: server.vmState };
    switchOff(server);
  };
  /** nova/compute/manager.py, _confirm_resize: its guest may have stopped since. */
  const confirm = (server: Server): void => {
    servers.settle(server, server.isRunning ? 'active' : 'stopped');
    server.before = undefined;
  };
  const takeSnapshot = (server: Server): void => {
    switchOff(server);
    if (server.isVolumeBacked) return;
    const { id, name, project_id } = server;
    const changes = { project_id, isPublic: false, status: 'saving', server: id } as const;
    server.snapshot = cloud.image(`${name}-shelved`, changes);
  };
  /** What boots from a volume has no image, and does not wait on its host. */
  const upload = (server: Server): boolean => {
    mayFail('Failed to upload the snapshot');
    if (server.snapshot !== undefined) server.snapshot.status = 'active';
    servers.settle(server, 'shelved');
    return server.isVolumeBacked || cloud.parts.keepsShelved !== true;
  };
  const offload = (server: Server): void => {
    if (server.snapshot !== undefined) server.snapshot.bytes = server.disk;
    server.disk = undefined;
    server.host = undefined;
    for (const mapping of server.mappings) {
      volumes.release(mapping.volume, mapping.attachment);
      mapping.attachment = volumes.reserve(mapping.volume, server);
    }
  };
  const bringBack = (server: Server): void => {
    mayFail('Failed to spawn');
    connect(server);
    const { snapshot } = server;
    if (snapshot === undefined) return;
    server.disk = snapshot.bytes ?? { content: EMPTY };
    snapshot.bytes = undefined;
    server.snapshot = undefined;
    if (!cloud.fails(0.05)) cloud.images.delete(snapshot.id);
  };
  const wipe = (server: Server): void => {
    mayFail('Failed to terminate process');
    switchOff(server);
    server.disk = undefined;
  };
  const offloading: Phase = ['shelving_offloading', 20_000, offload];
  return [
    {
      name: 'create',
      phases: [
        ['scheduling', 10_000, placeFirst],
        ['networking', 20_000, plug],
        ['block_device_mapping', 5_000, connect],
        ['spawning', 60_000, spawn],
      ],
      to: 'active',
      // Its record is left, without a host. Nova unplugs the ports that it named, also where another server has one.
      failed: (server) => {
        for (const id of server.ports) Object.assign(cloud.ports.get(id) ?? {}, { device_id: '' });
        servers.releaseParts(server);
        Object.assign(server, { host: undefined, vmState: 'error' });
      },
    },
    simple('os-start', ['stopped'], 'powering-on', 'active', true),
    simple('os-stop', ['active', 'error'], 'powering-off', 'stopped', true),
    simple('pause', ['active'], 'pausing', 'paused'),
    simple('unpause', ['paused'], 'unpausing', 'active'),
    simple('suspend', ['active'], 'suspending', 'suspended'),
    simple('resume', ['suspended'], 'resuming', 'active'),
    simple('rescue', ['active', 'stopped', 'error'], 'rescuing', 'rescued'),
    simple('unrescue', ['rescued'], 'unrescuing', 'active'),
    simple('restore', ['soft-delete'], 'restoring', 'active'),
    {
      name: 'reboot',
      from: ['active', 'stopped', 'paused', 'suspended', 'error'],
      phases: [
        ['rebooting_hard', 5_000, switchOff],
        ['reboot_started_hard', 20_000],
      ],
      to: 'active',
      isTakenUp: true,
    },
    {
      name: 'migrate',
      from: ['active', 'stopped'],
      phases: [
        ['resize_prep', 10_000, prepare],
        ['resize_migrating', 60_000, move],
        ['resize_finish', 20_000],
      ],
      to: 'resized',
    },
    { name: 'confirmResize', from: ['resized'], phases: [[null, 10_000, confirm]] },
    { name: 'os-migrateLive', from: ['active', 'paused'], phases: [['migrating', 60_000, move]] },
    {
      name: 'shelve',
      from: ['active', 'stopped', 'paused', 'suspended'],
      phases: [['shelving', 60_000, takeSnapshot], ['shelving_image_uploading', 120_000, upload], offloading],
      to: 'shelved_offloaded',
      // Its guest is off, and Nova takes it for ACTIVE until it looks.
      failed: (server) => {
        cloud.images.delete(server.snapshot?.id ?? '');
        server.snapshot = undefined;
        servers.guestStopped(server);
      },
    },
    { name: 'shelveOffload', from: ['shelved'], phases: [offloading], to: 'shelved_offloaded' },
    simple('unshelve', ['shelved'], 'powering-on', 'active'),
    {
      name: 'unshelve',
      from: ['shelved_offloaded'],
      // Where no host can take it, it stays as it is: 202 promised nothing.
      phases: [
        ['unshelving', 5_000, place],
        ['spawning', 90_000, bringBack],
      ],
      to: 'active',
      failed: (server) => Object.assign(server, { host: undefined }),
    },
    {
      name: 'soft-delete',
      phases: [['soft-deleting', 20_000, (server) => servers.reclaimLater(server)]],
      to: 'soft-delete',
    },
    {
      name: 'delete',
      phases: [
        ['deleting', 60_000, wipe],
        ['deleting', 60_000, (server) => servers.dissolve(server)],
      ],
      isTakenUp: true,
      failed: (server) => Object.assign(server, { vmState: 'error' }),
    },
  ];
}
