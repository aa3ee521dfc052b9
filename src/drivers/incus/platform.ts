import type {
  DriverManifest,
  Listing,
  Placing,
  PlatformDriver,
  Presence,
  Step,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { IncusApi } from './api.ts';
import { type Connection, IncusClient } from './client.ts';
import { toFailure } from './errors.ts';
import { InstanceReader } from './instances.ts';
import { Machines } from './machines.ts';
import type { IncusConfig } from './options.ts';
import { countedRefs, countFree, FleetReader, isJudgeable, NO_MEMBER, toHosts } from './placement.ts';
import { Volumes } from './volumes.ts';

/** Incus shows a request as an operation or an instance as soon as it has received it. Only the transfer takes time. */
const ON_ITS_WAY_MS = 5_000;
/** Incus stores it with the instance, in a database that is replicated to every member. */
const MAX_CLOUD_INIT_BYTES = 512 * 1024;
const MAX_CONSOLE_BYTES = 16 * 1024;

export function openIncus(
  options: IncusConfig,
  connection: Connection,
  { catalog, clock }: Pick<DriverSetting, 'catalog' | 'clock'>,
): PlatformDriver {
  const now = (): number => clock.now();
  const client = new IncusClient({ ...connection, now });
  const api = new IncusApi(client);
  const instances = new InstanceReader(api);
  const fleet = new FleetReader({ api, instances }, options, catalog, now);
  const machines = new Machines({ api, instances, options, catalog, fleet, now, wait });
  return {
    manifest: manifestOf(options),
    get: (ref) => look(() => machines.get(ref)),
    list: () => look(() => machines.list()),
    place: (spec, avoidHosts) => look(() => machines.place(spec, avoidHosts)),
    create: (...args) => order(() => machines.create(...args)),
    stop: (...args) => order(() => machines.stop(...args)),
    start: (...args) => order(() => machines.start(...args)),
    restart: (...args) => order(() => machines.restart(...args)),
    destroy: (...args) => order(() => machines.destroy(...args)),
    disown: (...args) => order(() => machines.disown(...args)),
    volumes: guarded(new Volumes({ api, options, fleet, finder: machines.finder })),
    async inventory(avoidHosts) {
      try {
        const now = await fleet.read();
        if (!isJudgeable(now)) return { answer: 'unknown', reason: NO_MEMBER };
        return {
          answer: 'counted',
          free: countFree(catalog, now, options, avoidHosts),
          counted: countedRefs(now),
          hosts: toHosts(catalog, now, options, avoidHosts),
        };
      } catch (error) {
        return { answer: 'unknown', reason: reasonOf(error) };
      }
    },
    async consoleTail(ref) {
      const log = Buffer.from(await machines.consoleLog(ref));
      return log.length === 0 ? undefined : log.subarray(-MAX_CONSOLE_BYTES).toString();
    },
    close: () => client.close(),
  };
}

function guarded(volumes: Volumes): VolumeDriver {
  return {
    get: (ref) => look(() => volumes.get(ref)),
    list: () => look(() => volumes.list()),
    place: (spec, avoidHosts) => look(() => volumes.place(spec, avoidHosts)),
    create: (...args) => order(() => volumes.create(...args)),
    attach: (...args) => order(() => volumes.attach(...args)),
    detach: (...args) => order(() => volumes.detach(...args)),
    resize: (...args) => order(() => volumes.resize(...args)),
    copy: (...args) => order(() => volumes.copy(...args)),
    destroy: (...args) => order(() => volumes.destroy(...args)),
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
    cloudInitBytes: MAX_CLOUD_INIT_BYTES,
  };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A failed read answers unknown, which never proves absence. */
async function look<Answer extends Presence<unknown> | Listing<unknown> | Placing>(
  call: () => Promise<Answer>,
): Promise<Answer | { answer: 'unknown'; reason: string }> {
  try {
    return await call();
  } catch (error) {
    return { answer: 'unknown', reason: reasonOf(error) };
  }
}

/** Classifies a refusal of Incus. A lost answer rejects, and the core treats it as unknown. */
async function order<T>(call: () => Promise<Step<T>>): Promise<Step<T>> {
  try {
    return await call();
  } catch (error) {
    return toFailure(error);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
