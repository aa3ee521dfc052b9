import type {
  Call,
  DriverManifest,
  PlatformDriver,
  Step,
  WriterMarks,
} from '../../orchestrator/model/platform-driver.ts';
import { NoRoomForMark } from '../../ports/errors.ts';
import { orFailure, orUnknown } from '../kit/answers.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { CloudApi } from './api.ts';
import { CloudClient, type Connection, KEEPS_DATA } from './client.ts';
import { createMachine, ON_ITS_WAY_MS } from './create.ts';
import { destroyMachine, disownMachine } from './destroy.ts';
import { CloudRefusal, classify, toFailure } from './errors.ts';
import { getMachine, listMachines, readConsole } from './machines.ts';
import type { OpenStackConfig } from './options.ts';
import { placeMachine, readInventory } from './placement.ts';
import type { Platform } from './platform.ts';
import { restartMachine, startMachine, stopMachine } from './power.ts';
import {
  attachVolume,
  createVolume,
  destroyVolume,
  detachVolume,
  getVolume,
  listVolumes,
  resizeVolume,
} from './volumes.ts';

/** Nova accepts 48 KiB of user data, which holds the provider's part too. */
const MAX_CLOUD_INIT_BYTES = 32 * 1024;
const CONSOLE_LINES = 200;
const MAX_CONSOLE_BYTES = 16 * 1024;

export function openOpenStack(
  options: OpenStackConfig,
  connection: Connection,
  { catalog, clock }: Pick<DriverSetting, 'catalog' | 'clock'>,
): PlatformDriver {
  const client = new CloudClient({ ...connection, now: () => clock.now() });
  const platform: Platform = { options, catalog, api: new CloudApi(client) };
  const change = <T>(call: Call | undefined, task: (platform: Platform) => Promise<Step<T>>) =>
    orFailure(() => task({ ...platform, api: new CloudApi(client, call) }), toFailure);
  return {
    manifest,
    get: (ref) => orUnknown(() => getMachine(platform, ref)),
    list: () => orUnknown(() => listMachines(platform)),
    place: (spec, avoidHosts) => orUnknown(() => placeMachine(platform, spec, avoidHosts)),
    create: (spec, cookie, call) => change(call, (within) => createMachine(within, spec, cookie)),
    stop: (ref, cookie, call) => change(call, (within) => stopMachine(within, ref, cookie)),
    start: (ref, cookie, call) => change(call, (within) => startMachine(within, ref, cookie)),
    restart: (ref, id, cookie, call) => change(call, (within) => restartMachine(within, ref, id, cookie)),
    destroy: (ref, cookie, order, call) =>
      change(call, (within) => destroyMachine(within, ref, cookie, order)),
    disown: (ref, cookie, call) => change(call, (within) => disownMachine(within, ref, cookie)),
    volumes: {
      get: (ref) => orUnknown(() => getVolume(platform, ref)),
      list: () => orUnknown(() => listVolumes(platform)),
      create: (spec, cookie, call) => change(call, (within) => createVolume(within, spec, cookie)),
      attach: (ref, machine, cookie, call) =>
        change(call, (within) => attachVolume(within, ref, machine, cookie)),
      detach: (ref, machine, cookie, call) =>
        change(call, (within) => detachVolume(within, ref, machine, cookie)),
      resize: (ref, sizeGb, cookie, call) =>
        change(call, (within) => resizeVolume(within, ref, sizeGb, cookie)),
      destroy: (ref, cookie, order, call) =>
        change(call, (within) => destroyVolume(within, ref, cookie, order)),
    },
    writer: writerOf(platform.api),
    inventory: (avoidHosts) => orUnknown(() => readInventory(platform, avoidHosts)),
    async consoleTail(ref) {
      const log = Buffer.from(await readConsole(platform, ref, CONSOLE_LINES));
      return log.length === 0 ? undefined : log.subarray(-MAX_CONSOLE_BYTES).toString();
    },
    close: () => client.close(),
  };
}

export const manifest: DriverManifest = {
  name: 'openstack',
  stop: true,
  resume: true,
  restart: true,
  attachVolume: 'hot',
  resizeVolume: 'detached',
  createVisibleWithinMs: ON_ITS_WAY_MS,
  keepsNotes: true,
  marksWriter: true,
  cloudInitBytes: MAX_CLOUD_INIT_BYTES,
};

/** The mark of the writer is the description of a security group that no port uses: every member may make one. */
function writerOf(api: CloudApi): WriterMarks {
  const nameOf = (key: string): string => `berth-writer-${key}`;
  const groups = (key: string) => api.allNamed('security-groups', nameOf(key));
  const pathOf = ({ id }: { id: string }): string => `/security-groups/${id}`;
  return {
    // Two first writers at once make two.
    async read(key) {
      const texts = (await groups(key)).map(({ description = '' }) => description);
      return texts.length === 0 ? [''] : texts;
    },
    async write(key, text) {
      const found = await groups(key);
      const description = { description: text };
      for (const group of found)
        if (text === '') await api.remove('network', pathOf(group), KEEPS_DATA);
        else await api.update('network', pathOf(group), 'security_group', description);
      if (found.length > 0 || text === '') return;
      const group = { name: nameOf(key), ...description };
      await api.make('network', '/security-groups', 'security_group', group).catch((error) => {
        const isQuota = error instanceof CloudRefusal && classify(error.message, error.status) === 'quota';
        throw isQuota ? new NoRoomForMark(error.message) : error;
      });
    },
  };
}
