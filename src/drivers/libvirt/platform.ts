import type {
  DriverManifest,
  Inventory,
  Listing,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { createMachine, mend, type Platform } from './create.ts';
import { tellsNothing, toFailure, VirshError } from './errors.ts';
import { hostsOf, type Member, openFleet } from './fleet.ts';
import { sweepHost } from './gpus/machine-gpus.ts';
import { listDomains, readHostView } from './hosts/host-view.ts';
import { countUnits, type HostAnswer } from './hosts/inventory.ts';
import type { LibvirtConfig } from './options.ts';
import { filesOf, readEnd } from './pool.ts';
import { destroyMachine, restartMachine, startMachine, stopMachine } from './power.ts';
import { neighboursOf, toObserved } from './translate.ts';
import { faultOf, readPause, readSurroundings } from './trouble.ts';
import { createVolumes } from './volumes.ts';

/** Of one host among several: less than the core gives one call, at the default `lease_s`. */
const HOST_WITHIN_MS = 5_000;
const CONSOLE_BYTES = 16 * 1024;
/** What the NoCloud disk is made for; cloud-init itself takes more. */
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
  cloudInitBytes: CLOUD_INIT_BYTES,
};

/** The driver over a fleet, however it was opened. */
export function driverOf(platform: Platform): PlatformDriver {
  const { fleet } = platform;
  const alone = <T>(ref: OwnerRef, task: () => Promise<Step<T>>): Promise<Step<T>> =>
    fleet.alone(ref, () => task().catch(toFailure));
  return {
    manifest,
    async get(ref) {
      const search = await fleet.find(ref);
      if (search.answer !== 'found') return search;
      return { answer: 'observed', value: await toObserved(await mend(search.machine)) };
    },
    async list() {
      return listAll(fleet.hosts);
    },
    create: (spec, cookie) => alone(spec.ref, () => createMachine(platform, spec, cookie)),
    stop: (ref, cookie) => alone(ref, () => stopMachine(platform, ref, cookie)),
    start: (ref) => alone(ref, () => startMachine(platform, ref)),
    restart: (ref, id) => alone(ref, () => restartMachine(platform, ref, id)),
    destroy: (ref) => alone(ref, () => destroyMachine(platform, ref)),
    volumes: createVolumes(platform),
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

/** The hosts that answer are named: the machines of another must not seem lost. Where none answers, nothing is known. */
async function listAll(hosts: readonly Member[]): Promise<Listing<ObservedMachine>> {
  const silent = new Map<string, string>();
  const listOne = (host: Member): Promise<ObservedMachine[]> =>
    inTime(hosts, host, listHost(host)).catch((error) => {
      if (!(error instanceof VirshError && tellsNothing(error))) throw error;
      silent.set(host.name, error.message);
      return [];
    });
  try {
    const items = (await Promise.all(hosts.map(listOne))).flat();
    if (silent.size === hosts.length) return { answer: 'unknown', reason: [...silent.values()].join('; ') };
    const first = Map.groupBy(items, ({ ref }) => ref).values();
    return {
      answer: 'listed',
      items: [...first].map(theOne),
      hosts: hostsOf(hosts, silent),
    };
  } catch (error) {
    if (error instanceof VirshError) return { answer: 'unknown', reason: error.message };
    throw error;
  }
}

/** Of several hosts one that hangs, such as one that lost its power, does not take the answers of the others with it. */
async function inTime<T>(hosts: readonly Member[], { name }: Member, reading: Promise<T>): Promise<T> {
  if (hosts.length === 1) return reading;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const problem = new VirshError('unreachable', `${name} does not answer within ${HOST_WITHIN_MS} ms`);
  const timer = setTimeout(() => reject(problem), HOST_WITHIN_MS);
  try {
    return await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Of a machine and its copies on other hosts. */
const theOne = (of: readonly ObservedMachine[]): ObservedMachine =>
  of.find(({ power }) => power === 'running') ?? (of[0] as ObservedMachine);

async function listHost(host: Member): Promise<ObservedMachine[]> {
  const domains = await listDomains(host);
  const ours = domains.flatMap(({ mark, ...domain }) =>
    mark === undefined || mark.ref !== domain.name ? [] : [{ ...domain, mark }],
  );
  const neighbours = neighboursOf(host);
  const surroundings = ours.length === 0 ? undefined : await readSurroundings(host, ours);
  return Promise.all(
    ours.map(async (domain) => {
      const { running, isPaused, name: ref, mark } = domain;
      const pause = isPaused ? await readPause(host, ref) : undefined;
      // Its files are still being made.
      const isMade = running || (mark.memo !== 'create' && mark.memo !== 'boot');
      const fault = isMade ? faultOf({ ref, running, pause, domain }, surroundings) : undefined;
      return toObserved({ host, running, pause, fault, neighbours, domain });
    }),
  );
}

/** What the hosts have room for. GPUs that wait for a reset get it first, so that one that failed to get it is not lost. */
async function readInventory(
  { fleet, config, catalog, log }: Platform,
  avoidHosts: readonly string[] | undefined,
): Promise<Inventory> {
  const answers = await Promise.all(
    fleet.hosts.map(async (host): Promise<HostAnswer> => {
      try {
        const reading = sweepHost(host, config.gpu_types, log).then(() =>
          readHostView(host, host.shell, config.gpu_types),
        );
        return { host: host.name, view: await inTime(fleet.hosts, host, reading) };
      } catch (error) {
        if (error instanceof VirshError) return { host: host.name, unknown: error.message };
        throw error;
      }
    }),
  );
  return countUnits(catalog, answers, avoidHosts, config);
}
