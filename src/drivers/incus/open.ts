import type {
  Call,
  DriverManifest,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import { orFailure, orUnknown } from '../kit/answers.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { IncusApi } from './api.ts';
import { type Connection, IncusClient } from './client.ts';
import { createMachine, placeMachine } from './create.ts';
import { destroyMachine, disownMachine } from './destroy.ts';
import { toFailure } from './errors.ts';
import { getMachine, listMachines, readConsole } from './machines.ts';
import type { IncusConfig } from './options.ts';
import { readInventory } from './placement.ts';
import { type Platform, platformOf } from './platform.ts';
import { restartMachine, startMachine, stopMachine } from './power.ts';
import { copyVolume } from './volume-copies.ts';
import {
  attachVolume,
  createVolume,
  destroyVolume,
  detachVolume,
  getVolume,
  listVolumes,
  placeVolume,
  readUsage,
  resizeVolume,
} from './volumes.ts';

/** Time for a request to reach Incus. As soon as it has arrived, Incus shows it as an operation or an instance. */
const ON_ITS_WAY_MS = 5_000;
/** Limit of cloud-init. Incus stores it with the instance, in a database that is replicated to every member. */
const MAX_CLOUD_INIT_BYTES = 512 * 1024;
const MAX_CONSOLE_BYTES = 16 * 1024;
/** The mark of the writer is a key of the project. */
const WRITER = 'user.berth.writer.';

export function openIncus(
  options: IncusConfig,
  connection: Connection,
  { catalog, clock }: Pick<DriverSetting, 'catalog' | 'clock'>,
): PlatformDriver {
  const now = (): number => clock.now();
  const client = new IncusClient({ ...connection, now });
  const driver = driverOf(platformOf(new IncusApi(client), options, catalog, now));
  return { ...driver, close: () => client.close() };
}

type IncusDriver = Required<Omit<PlatformDriver, 'close' | 'volumes'>> & { volumes: Required<VolumeDriver> };

export function driverOf(platform: Platform): IncusDriver {
  const change = <T>(call: Call | undefined, task: (platform: Platform) => Promise<Step<T>>) =>
    orFailure(() => task({ ...platform, call }), toFailure);
  return {
    manifest: manifestOf(platform.options),
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
      usage: () => orUnknown(() => readUsage(platform)),
      place: (spec, avoidHosts) => orUnknown(() => placeVolume(platform, spec, avoidHosts)),
      create: (spec, _cookie, call) => change(call, (within) => createVolume(within, spec)),
      attach: (ref, machine, _cookie, call) => change(call, (within) => attachVolume(within, ref, machine)),
      detach: (ref, machine, cookie, call) =>
        change(call, (within) => detachVolume(within, ref, machine, cookie)),
      resize: (ref, sizeGb, _cookie, call) => change(call, (within) => resizeVolume(within, ref, sizeGb)),
      copy: (ref, spec, cookie, call) => change(call, (within) => copyVolume(within, ref, spec, cookie)),
      destroy: (ref, cookie, order, call) =>
        change(call, (within) => destroyVolume(within, ref, cookie, order)),
    },
    writer: {
      read: async (key) => [(await platform.api.projectConfig())[`${WRITER}${key}`] ?? ''],
      write: (key, text) => platform.api.setProjectConfig({ [`${WRITER}${key}`]: text }),
    },
    inventory: (avoidHosts) => orUnknown(() => readInventory(platform, avoidHosts)),
    async consoleTail(ref) {
      const log = Buffer.from(await readConsole(platform, ref));
      return log.length === 0 ? undefined : log.subarray(-MAX_CONSOLE_BYTES).toString();
    },
  };
}

export function manifestOf({ volume_content: content }: Pick<IncusConfig, 'volume_content'>): DriverManifest {
  return {
    name: 'incus',
    stop: true,
    resume: true,
    restart: true,
    attachVolume: 'hot',
    resizeVolume: content === 'filesystem' ? 'attached' : 'detached',
    createVisibleWithinMs: ON_ITS_WAY_MS,
    keepsNotes: true,
    volumeUsage: true,
    marksWriter: true,
    cloudInitBytes: MAX_CLOUD_INIT_BYTES,
  };
}
