import type { FreeUnits } from '../../../src/orchestrator/model/inventory.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import { type Answer, driverOf, type Method, type Platform } from '../../../src/platform-model/platform.ts';
import { done, failed } from '../../../src/platform-model/steps.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { FalseAnswers, Network } from './network.ts';
import type { Machine } from './platform.ts';
import type { Traits } from './traits.ts';

/** Who is told of what the platform counts. */
export interface CountObserver {
  /** `held`: the machines that held a unit when it was counted. */
  counted(count: {
    process: ServerProcess;
    askedAt: number;
    free: readonly FreeUnits[];
    held: readonly Machine[];
  }): void;
}

/** What a driver uses of the platform. */
export interface Reach extends Platform<Machine> {
  network: Network;
  observer: CountObserver;
  traits: Traits;
  chance: Chance;
  scheduler: Scheduler;
}

const unknown = () => ({ answer: 'unknown', reason: 'the service is unavailable' }) as const;
/** A platform whose credential was revoked shows an empty account. */
const nothingThere = () => ({ answer: 'gone' }) as const;
const nothingListed = () => ({ answer: 'listed', items: [] as never[] }) as const;
const notThere = () => failed('gone', 'there is no such resource');

/** The driver of one process. */
export function simulatedDriver(reach: Reach, process: ServerProcess): PlatformDriver {
  const { network, observer, scheduler, machines, traits } = reach;
  return driverOf(reach, traits.manifest, async (method, ref, call) => {
    const askedAt = scheduler.now;
    let held: Machine[] = [];
    /** What is answered at this moment is answered of the machines of this moment, be it true or not. */
    const noting =
      <T extends Answer>(answer: () => T) =>
      (): T => {
        if (method === 'inventory') held = machines.all().filter(({ holdsUnit }) => holdsUnit);
        return answer();
      };
    const { empty, ...lies } = falseAnswers(reach, method, ref ?? '');
    const answers = empty === undefined ? lies : { ...lies, empty: noting(empty) };
    const answer = await network.send(process, { method, ref }, noting(call), answers);
    if ('free' in answer) observer.counted({ process, askedAt, free: answer.free, held });
    return answer;
  });
}

/** What the platform says in place of the truth, by what is asked of it. */
function falseAnswers({ machines, volumes, chance }: Reach, method: Method, ref: string): FalseAnswers {
  switch (method) {
    case 'get':
    case 'volumes.get':
      return { unknown, revoked: nothingThere };
    case 'list':
    case 'volumes.list':
    case 'volumes.usage':
      return {
        unknown,
        empty: nothingListed,
        revoked: nothingListed,
        partial: (answer) => halfOf(answer, chance),
      };
    case 'inventory':
      return {
        unknown,
        revoked: unknown,
        empty: () => fewer(machines.inventory(), () => 0),
        partial: (answer) => fewer(answer, (units) => chance.whole(0, units)),
      };
    case 'create':
    case 'disown':
    case 'volumes.create':
    case 'volumes.attach':
    case 'volumes.detach':
      return { revoked: () => failed('auth', 'the credential is not known') };
    case 'destroy':
    case 'volumes.destroy':
      return { idle: () => done(null), revoked: notThere };
    case 'stop':
    case 'start':
    case 'restart':
    case 'volumes.resize':
      return {
        revoked: notThere,
        // "Done", although nothing was done.
        idle: () => {
          const found = method === 'volumes.resize' ? volumes.get(ref) : machines.get(ref);
          return found.answer === 'observed' ? done(found.value) : notThere();
        },
        'no-capacity': () =>
          machines.of(ref)[0]?.power === 'stopped' ? failed('capacity', 'no host has room') : undefined,
      };
  }
}

function halfOf(answer: Answer, chance: Chance): Answer {
  return 'items' in answer ? { ...answer, items: answer.items.filter(() => chance.happens(0.5)) } : answer;
}

/** A count that tells of fewer units than there are. */
function fewer(answer: Answer | undefined, less: (units: number) => number): Answer {
  if (answer === undefined || !('free' in answer)) return unknown();
  return { ...answer, free: answer.free.map((entry) => ({ ...entry, units: less(entry.units) })) };
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
