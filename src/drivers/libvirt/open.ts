import type {
  DriverManifest,
  PlatformDriver,
  WriterMarks,
} from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { createMachine } from './create.ts';
import { destroyMachine, disownMachine } from './destroy.ts';
import { isHostFailure, unknownOf, VirshError } from './errors.ts';
import { inTime, type Member, openFleet } from './fleet.ts';
import { runHostScript } from './hosts/host-facts.ts';
import { getMachine, listMachines } from './machines.ts';
import type { LibvirtConfig } from './options.ts';
import { placeOnHosts, readInventory } from './placement.ts';
import { changing, type Platform } from './platform.ts';
import { filesOf, readEnd } from './pool.ts';
import { restartMachine, startMachine, stopMachine } from './power.ts';
import { VolumeReader } from './volume-reader.ts';
import { volumesOf } from './volumes.ts';

const CONSOLE_BYTES = 16 * 1024;
/** The limit that the NoCloud disk is designed for; cloud-init itself accepts more. */
const CLOUD_INIT_BYTES = 1024 * 1024;

export function openLibvirt(
  config: LibvirtConfig,
  { catalog, clock, log, asking }: Pick<DriverSetting, 'catalog' | 'clock' | 'log' | 'asking'>,
): PlatformDriver {
  return driverOf({ fleet: openFleet(config, log, asking), config, catalog, clock, log });
}

export const manifest: DriverManifest = {
  name: 'libvirt',
  stop: true,
  resume: true,
  restart: true,
  attachVolume: 'hot',
  resizeVolume: 'attached',
  createVisibleWithinMs: 0,
  keepsNotes: true,
  volumeUsage: true,
  fences: true,
  marksWriter: true,
  cloudInitBytes: CLOUD_INIT_BYTES,
};

export function driverOf(given: Omit<Platform, 'volumes'>): PlatformDriver {
  const { fleet } = given;
  const platform = { ...given, volumes: new VolumeReader(fleet.hosts) };
  const machine = changing(platform, 'machine');
  return {
    manifest,
    get: (ref) => getMachine(platform, ref).catch(unknownOf),
    list: () => listMachines(platform).catch(unknownOf),
    place: (spec, avoidHosts) => placeOnHosts(platform, spec, avoidHosts),
    create: (spec, cookie, call) =>
      machine(spec.ref, cookie, call, (within) => createMachine(within, spec, cookie)),
    stop: (ref, cookie, call) => machine(ref, cookie, call, (within) => stopMachine(within, ref, cookie)),
    start: (ref, cookie, call) => machine(ref, cookie, call, (within) => startMachine(within, ref, cookie)),
    restart: (ref, id, cookie, call) =>
      machine(ref, cookie, call, (within) => restartMachine(within, ref, id, cookie)),
    destroy: (ref, cookie, order, call) =>
      machine(ref, cookie, call, (within) => destroyMachine(within, ref, cookie, order)),
    disown: (ref, cookie, call) => machine(ref, cookie, call, (within) => disownMachine(within, ref, cookie)),
    volumes: volumesOf(platform),
    writer: writerOf(platform),
    inventory: (avoidHosts) => readInventory(platform, avoidHosts),
    async consoleTail(ref) {
      const search = await fleet.find(ref);
      if (search.answer !== 'found') return undefined;
      return readEnd(search.machine.host, filesOf(ref).console, CONSOLE_BYTES);
    },
    async close() {
      await Promise.all(fleet.hosts.map((host) => host.close()));
    },
  };
}

/** The mark of the writer is a file in the state folder of each host. */
function writerOf({ fleet: { hosts }, clock }: Pick<Platform, 'fleet' | 'clock'>): WriterMarks {
  const onHost = async (host: Member, args: readonly string[]): Promise<string> => {
    const place = { stateDir: host.options.state_dir };
    const asked = runHostScript(host.shell, place, ['writer', ...args]);
    const { status, lines, stderr } = await inTime(clock, hosts, host, asked);
    if (status === 0) return lines.find(([word]) => word === 'writer')?.[1] ?? '';
    throw new VirshError('other', `${host.name}: ${stderr.trim().slice(0, 300)}`);
  };
  /** Host failures count only if no host answers. */
  const onAll = async (...args: string[]): Promise<string[]> => {
    const answers = await Promise.allSettled(hosts.map((host) => onHost(host, args)));
    const texts = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const problems = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    const isHostDown = (one: unknown): boolean => one instanceof VirshError && isHostFailure(one);
    const decisive = problems.find((one) => texts.length === 0 || !isHostDown(one));
    if (decisive !== undefined) throw decisive;
    return texts;
  };
  return { read: onAll, write: async (key, text) => void (await onAll(key, text)) };
}
