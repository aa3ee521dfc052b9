import type {
  Listing,
  PlatformDriver,
  Presence,
  Step,
  VolumeDriver,
} from '../../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { Machines } from './machines.ts';
import type { FalseAnswers, Network } from './network.ts';
import { done, failed } from './steps.ts';
import type { Traits } from './traits.ts';
import type { Volumes } from './volumes.ts';

/** What a driver uses of the platform. */
export interface Reach {
  network: Network;
  machines: Machines;
  volumes: Volumes;
  traits: Traits;
  chance: Chance;
}

const unknown = () => ({ answer: 'unknown', reason: 'the service is unavailable' }) as const;
/** A platform whose credential was revoked shows an empty account. */
const nothingThere = () => ({ answer: 'gone' }) as const;
const nothingListed = () => ({ answer: 'listed', items: [] }) as const satisfies Listing<never>;
const notThere = () => failed('gone', 'there is no such resource');

/** The driver of one process. */
export function simulatedDriver(reach: Reach, process: ServerProcess): PlatformDriver {
  const { network, machines, traits } = reach;
  return {
    manifest: traits.manifest,
    get: (ref) => network.send(process, { method: 'get', ref }, () => machines.get(ref), falseGets()),
    list: () =>
      network.send(
        process,
        { method: 'list', ref: undefined },
        () => ({ answer: 'listed', items: machines.list() }),
        falseLists(reach.chance),
      ),
    create: (spec, cookie) =>
      network.send(process, { method: 'create', ref: spec.ref }, () => machines.create(spec, cookie), {
        revoked: () => failed('auth', 'the credential is not known'),
      }),
    stop: (ref) =>
      network.send(
        process,
        { method: 'stop', ref },
        () => machines.stop(ref),
        falseDones(() => machines.get(ref)),
      ),
    start: (ref) =>
      network.send(process, { method: 'start', ref }, () => machines.start(ref), {
        ...falseDones(() => machines.get(ref)),
        'no-capacity': () =>
          machines.of(ref)[0]?.power === 'stopped' ? failed('capacity', 'no host has room') : undefined,
      }),
    restart: (ref, id) =>
      network.send(
        process,
        { method: 'restart', ref },
        () => machines.restart(ref, id),
        falseDones(() => machines.get(ref)),
      ),
    destroy: (ref) =>
      network.send(process, { method: 'destroy', ref }, () => machines.destroy(ref), {
        idle: () => done(null),
        revoked: notThere,
      }),
    volumes: volumeDriver(reach, process),
    close: async () => undefined,
  };
}

function volumeDriver({ network, volumes, chance }: Reach, process: ServerProcess): VolumeDriver {
  return {
    get: (ref) => network.send(process, { method: 'volumes.get', ref }, () => volumes.get(ref), falseGets()),
    list: () =>
      network.send(
        process,
        { method: 'volumes.list', ref: undefined },
        () => ({ answer: 'listed', items: volumes.list() }),
        falseLists(chance),
      ),
    create: (spec, cookie) =>
      network.send(process, { method: 'volumes.create', ref: spec.ref }, () => volumes.create(spec, cookie), {
        revoked: () => failed('auth', 'the credential is not known'),
      }),
    attach: (ref, machine) =>
      network.send(process, { method: 'volumes.attach', ref }, () => volumes.attach(ref, machine), {
        revoked: () => failed('auth', 'the credential is not known'),
      }),
    detach: (ref, machine) =>
      network.send(process, { method: 'volumes.detach', ref }, () => volumes.detach(ref, machine), {
        revoked: () => failed('auth', 'the credential is not known'),
      }),
    resize: (ref, sizeGb, cookie) =>
      network.send(
        process,
        { method: 'volumes.resize', ref },
        () => volumes.resize(ref, sizeGb, cookie),
        falseDones(() => volumes.get(ref)),
      ),
    destroy: (ref) =>
      network.send(process, { method: 'volumes.destroy', ref }, () => volumes.destroy(ref), {
        idle: () => done(null),
        revoked: notThere,
      }),
  };
}

function falseGets<T>(): FalseAnswers<Presence<T>> {
  return { unknown, revoked: nothingThere };
}

function falseLists<T>(chance: Chance): FalseAnswers<Listing<T>> {
  return {
    unknown,
    empty: nothingListed,
    revoked: nothingListed,
    partial: (answer) =>
      answer.answer === 'listed'
        ? { answer: 'listed', items: answer.items.filter(() => chance.happens(0.5)) }
        : answer,
  };
}

/** "Done", although nothing was done. */
function falseDones<T>(look: () => Presence<T>): FalseAnswers<Step<T>> {
  return {
    idle: () => {
      const found = look();
      return found.answer === 'observed' ? done(found.value) : notThere();
    },
    revoked: notThere,
  };
}

/** The driver of a platform that has none of our resources. */
export const emptyDriver: Omit<PlatformDriver, 'manifest'> = {
  get: async () => nothingThere(),
  list: async () => nothingListed(),
  create: async () => notThere(),
  stop: async () => notThere(),
  start: async () => notThere(),
  restart: async () => notThere(),
  destroy: async () => done(null),
  close: async () => undefined,
};
