import type { Inventory } from '../orchestrator/model/inventory.ts';
import type {
  Call,
  Listing,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Presence,
  Step,
} from '../orchestrator/model/platform-driver.ts';
import { Machines } from './machines.ts';
import type { AttachmentRecord, MachineRecord, VolumeRecord } from './records.ts';
import type { Ports, VolumePhase } from './rules.ts';
import { Volumes } from './volumes.ts';

/** The stored state of a platform when its process ended. */
export interface Stored<M extends MachineRecord> {
  machines: Iterable<M>;
  volumes: Iterable<VolumeRecord>;
  attachments: Iterable<AttachmentRecord>;
}

/** A compute platform in memory. Its clock and its source of randomness are passed in; it has no timers. */
export interface Platform<M extends MachineRecord> {
  readonly machines: Machines<M>;
  readonly volumes: Volumes<M>;
}

export function createPlatform<M extends MachineRecord>(ports: Ports<M>, stored?: Stored<M>): Platform<M> {
  const machines: Machines<M> = new Machines(ports, (machine) => volumes.release(machine), stored?.machines);
  const volumes = new Volumes(ports, machines, stored);
  return { machines, volumes };
}

/** The methods of a driver. */
export type Method =
  | Exclude<keyof PlatformDriver, 'manifest' | 'volumes' | 'writer' | 'consoleTail' | 'place' | 'close'>
  | `volumes.${'get' | 'list' | 'usage' | VolumePhase}`;

export type Answer = Presence<unknown> | Listing<unknown> | Step<unknown> | Inventory;

/**
 * Passes a call to the platform and its answer to the caller. `ref`: the resource; undefined for listings. `limits`:
 * only for calls that change something.
 */
export type Carry = <T extends Answer>(
  method: Method,
  ref: OwnerRef | undefined,
  call: () => T,
  limits?: Call,
) => Promise<T>;

const noCount: Inventory = { answer: 'unknown', reason: 'this platform does not count' };

/** The calls of a driver about machines. */
export type MachineCalls = Pick<
  Machines<MachineRecord>,
  'get' | 'create' | 'stop' | 'start' | 'restart' | 'hasCounts' | 'inventory'
> & { list(): Listing<ObservedMachine> } & Record<
    'destroy' | 'disown',
    (ref: OwnerRef, cookie: string | null) => Step<null>
  >;

/** Makes a driver for a platform in this process. */
export function driverOf<M extends MachineRecord>(
  { machines, volumes }: { machines: MachineCalls; volumes: Volumes<M> },
  manifest: PlatformDriver['manifest'],
  carry: Carry = async (_method, _ref, call) => call(),
): Omit<PlatformDriver, 'volumes'> & Required<Pick<PlatformDriver, 'volumes'>> {
  return {
    manifest,
    get: (ref) => carry('get', ref, () => machines.get(ref)),
    list: () => carry('list', undefined, () => machines.list()),
    create: (spec, cookie, limits) => carry('create', spec.ref, () => machines.create(spec, cookie), limits),
    stop: (ref, _cookie, limits) => carry('stop', ref, () => machines.stop(ref), limits),
    start: (ref, _cookie, limits) => carry('start', ref, () => machines.start(ref), limits),
    restart: (ref, id, _cookie, limits) => carry('restart', ref, () => machines.restart(ref, id), limits),
    destroy: (ref, cookie, _order, limits) =>
      carry('destroy', ref, () => machines.destroy(ref, cookie), limits),
    disown: (ref, cookie, limits) => carry('disown', ref, () => machines.disown(ref, cookie), limits),
    ...(machines.hasCounts && {
      inventory: (avoidHosts) =>
        carry('inventory', undefined, () => machines.inventory(avoidHosts) ?? noCount),
    }),
    volumes: {
      get: (ref) => carry('volumes.get', ref, () => volumes.get(ref)),
      list: () => carry('volumes.list', undefined, () => ({ answer: 'listed', items: volumes.list() })),
      ...(manifest.volumeUsage === true && {
        usage: () => carry('volumes.usage', undefined, () => ({ answer: 'listed', items: volumes.usage() })),
      }),
      create: (spec, cookie, limits) =>
        carry('volumes.create', spec.ref, () => volumes.create(spec, cookie), limits),
      attach: (ref, machine, _cookie, limits) =>
        carry('volumes.attach', ref, () => volumes.attach(ref, machine), limits),
      detach: (ref, machine, _cookie, limits) =>
        carry('volumes.detach', ref, () => volumes.detach(ref, machine), limits),
      resize: (ref, sizeGb, _cookie, limits) =>
        carry('volumes.resize', ref, () => volumes.resize(ref, sizeGb), limits),
      destroy: (ref, _cookie, _order, limits) =>
        carry('volumes.destroy', ref, () => volumes.destroy(ref), limits),
    },
    close: async () => undefined,
  };
}
