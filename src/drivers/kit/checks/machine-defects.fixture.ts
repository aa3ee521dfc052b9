import { anOrder } from '../../../../test/support/rows/orchestrator-rows.ts';
import type { PlatformDriver, Step } from '../../../orchestrator/model/platform-driver.ts';
import {
  type Break,
  broken,
  done,
  listing,
  manifest,
  onHostThatIsNotAsked,
  volumes,
} from './breaks.fixture.ts';

let copies = 0;

/** A driver whose creates are in this phase while they are pending. */
function withProgress(driver: PlatformDriver, phase: string, deadlineAt: number): Partial<PlatformDriver> {
  return {
    create: async (spec, cookie) => {
      const step = await driver.create(spec, cookie);
      return step.outcome === 'pending' ? { ...step, progress: { phase, deadlineAt } } : step;
    },
  };
}

/** Defects of a driver, by the check that must detect them. */
export const machineDefects: Record<string, [defect: string, breaks: Break][]> = {
  manifest: [
    ['resumes what it cannot stop', (driver) => manifest(driver, { stop: false })],
    ['says that it has no volumes and has some', (driver) => manifest(driver, { attachVolume: 'none' })],
    ['gives a fraction of milliseconds', (driver) => manifest(driver, { createVisibleWithinMs: 0.5 })],
  ],
  'never-made': [
    [
      'answers unknown for a missing machine',
      () => ({ get: async () => ({ answer: 'unknown', reason: 'planted' }) }),
    ],
  ],
  listing: [
    ['lists nothing', () => ({ list: async () => ({ answer: 'listed', items: [] }) })],
    ['lists the newest of several', (driver) => listing(driver, (items) => items.slice(-1))],
    [
      'lists two machines at one endpoint',
      (driver) =>
        listing(driver, (items) =>
          items.map((item) => (items[0]?.endpoint ? { ...item, endpoint: items[0].endpoint } : item)),
        ),
    ],
    [
      'says that one of several is gone, and lists it',
      (driver) => ({
        get: async (ref) => {
          const found = await driver.list();
          const isAlone = found.answer === 'listed' && found.items.length < 2;
          return isAlone ? driver.get(ref) : { answer: 'gone' };
        },
      }),
    ],
  ],
  'avoid-hosts': [['has one host for all', (driver) => onHostThatIsNotAsked(driver)]],
  create: [
    ['gives a deadline in seconds', (driver, clock) => withProgress(driver, 'spawning', clock.now() / 1000)],
    ['gives a phase on two lines', (driver, clock) => withProgress(driver, 'a\nb', clock.now())],
    [
      'is done before it runs',
      (driver) => ({
        create: async (spec, cookie) => {
          await driver.create(spec, cookie);
          return { outcome: 'done', value: { ref: spec.ref, power: 'building', createdAt: 0 } };
        },
      }),
    ],
  ],
  'create-visible': [['hides what it makes', () => ({ get: async () => ({ answer: 'gone' }) })]],
  'create-adopts': [
    [
      'makes another one each time',
      (driver) => ({
        create: (spec, cookie) =>
          driver.create(cookie === null ? { ...spec, ref: `${spec.ref}-${copies++}` } : spec, cookie),
      }),
    ],
  ],
  crashes: [
    [
      'continues a destroy only with its cookie',
      (driver) => {
        let isAsked = false;
        const again = async (): Promise<Step<null>> => broken('internal');
        return {
          destroy: (ref, cookie) => {
            const isFirst = !isAsked;
            isAsked = true;
            return cookie === null && !isFirst ? again() : driver.destroy(ref, cookie, anOrder);
          },
        };
      },
    ],
  ],
  notes: [
    [
      'keeps no notes and says that it does',
      (driver) => ({ create: (spec, cookie) => driver.create({ ...spec, note: '' }, cookie) }),
    ],
  ],
  destroy: [
    ['says done and does nothing', () => ({ destroy: async () => done })],
    [
      'leaves a port',
      (driver) => {
        const left: { ref: string; detail: string }[] = [];
        return {
          destroy: async (ref, cookie) => {
            const step = await driver.destroy(ref, cookie, anOrder);
            if (step.outcome === 'done') left.push({ ref, detail: 'a port' });
            return step;
          },
          list: async () => ({ ...(await driver.list()), leftovers: left }),
        };
      },
    ],
    ['does not report that the host of the machine has answered', (driver) => onHostThatIsNotAsked(driver)],
  ],
  'destroy-again': [
    [
      'fails if there is no machine',
      (driver) => ({
        destroy: async (ref, cookie) =>
          (await driver.get(ref)).answer === 'gone'
            ? broken('internal')
            : driver.destroy(ref, cookie, anOrder),
      }),
    ],
  ],
  'stop-start': [
    ['stops though it says that it cannot', (driver) => manifest(driver, { stop: false, resume: false })],
    [
      'lists only running machines',
      (driver) => listing(driver, (items) => items.filter(({ power }) => power === 'running')),
    ],
    [
      'lists stopped machines as running',
      (driver) => listing(driver, (items) => items.map((item) => ({ ...item, power: 'running' }))),
    ],
    [
      'answers gone for a stopped machine',
      (driver) => ({
        get: async (ref) => {
          const found = await driver.get(ref);
          return found.answer === 'observed' && found.value.power === 'stopped' ? { answer: 'gone' } : found;
        },
      }),
    ],
    [
      'comes back at another address',
      (driver) => ({
        start: async (ref, cookie) => {
          const step = await driver.start(ref, cookie);
          if (step.outcome !== 'done') return step;
          const { endpoint, ...rest } = step.value;
          return {
            outcome: 'done',
            value: { ...rest, endpoint: { sshPort: 1, sshUsername: 'x', publicIp: '192.0.2.1' } },
          };
        },
      }),
    ],
  ],
  'power-of-none': [
    [
      'stops a missing machine',
      (driver) => ({
        stop: async (ref) => ({ outcome: 'done', value: { ref, power: 'stopped', createdAt: 0 } }),
        start: driver.start,
      }),
    ],
  ],
  restart: [
    ['resets nothing though it says that it can', () => ({ restart: async () => broken('internal') })],
  ],
  'restart-of-none': [
    ['starts a stopped machine', (driver) => ({ restart: (ref, _id, cookie) => driver.start(ref, cookie) })],
  ],
  'disown-running': [
    ['disowns a running machine', () => ({ disown: async () => done })],
    [
      'refuses, but disowns it',
      (driver) => ({
        disown: async (ref) => {
          await driver.destroy(ref, null, anOrder);
          return { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail: 'planted' };
        },
      }),
    ],
  ],
  disown: [
    [
      'says done and does nothing',
      (driver) => ({
        disown: async (ref, cookie) => {
          const { answer } = await driver.get(ref);
          return answer === 'observed' ? done : (driver.disown?.(ref, cookie) ?? done);
        },
      }),
    ],
    [
      'still lists its disk as Berth’s',
      (driver) => ({
        list: async () => {
          const found = await driver.list();
          return { ...found, leftovers: [{ ref: 'suite-a', detail: 'a disk' }] };
        },
      }),
    ],
    [
      'fails the second time',
      (driver) => ({
        disown: async (ref, cookie) =>
          (await driver.get(ref)).answer === 'gone'
            ? broken('internal')
            : (driver.disown?.(ref, cookie) ?? done),
      }),
    ],
  ],
  'writer-mark': [
    [
      'keeps no mark and says that it does',
      () => ({ writer: { read: async () => [''], write: async () => {} } }),
    ],
    [
      'has one mark for all',
      ({ writer }) =>
        writer === undefined
          ? {}
          : { writer: { read: () => writer.read('k'), write: (_key, text) => writer.write('k', text) } },
    ],
  ],
  capacity: [
    [
      'calls a full platform an internal error',
      (driver) => ({
        create: async (spec, cookie) => {
          const step = await driver.create(spec, cookie);
          return step.outcome === 'failed' ? { ...step, code: 'internal' } : step;
        },
      }),
    ],
  ],
  inventory: [
    [
      'counts units that it does not have',
      () => ({
        inventory: async () => ({
          answer: 'counted',
          free: [{ offerId: 'h100', datacenter: 'fra', units: 2 }],
        }),
      }),
    ],
  ],
  impossible: [
    [
      'fails with the wrong code',
      (driver) => ({
        create: async (spec, cookie) =>
          spec.datacenter === 'nowhere' ? broken('capacity') : driver.create(spec, cookie),
      }),
    ],
  ],
  unreachable: [['takes silence for absence', () => ({ get: async () => ({ answer: 'gone' }) })]],
  endpoint: [
    [
      'gives two machines one address',
      (driver) => ({
        create: async (spec, cookie) => {
          const step = await driver.create(spec, cookie);
          if (step.outcome !== 'done') return step;
          const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'ubuntu' };
          return { outcome: 'done', value: { ...step.value, endpoint } };
        },
      }),
    ],
  ],
  'cloud-init': [
    ['takes it though it says that it cannot', (driver) => manifest(driver, { cloudInitBytes: 0 })],
  ],
  'console-tail': [
    ['returns more than 16 KiB', () => ({ consoleTail: async () => 'x'.repeat(16 * 1024 + 1) })],
  ],
  'attempt-destroy': [
    [
      'destroys everything whose name starts with the ref',
      (driver) => ({
        destroy: async (ref, cookie) => {
          const found = await driver.list();
          const refs = found.answer === 'listed' ? found.items.map((item) => item.ref) : [];
          for (const other of refs.filter((one) => one.startsWith(ref)))
            await driver.destroy(other, null, anOrder);
          return driver.destroy(ref, cookie, anOrder);
        },
      }),
    ],
  ],
  'volume-attempt-destroy': [
    [
      'destroys everything whose name starts with the ref',
      (driver) =>
        volumes(driver, (given) => ({
          destroy: async (ref, cookie) => {
            await given.destroy(`${ref}-g1`, null, anOrder);
            return given.destroy(ref, cookie, anOrder);
          },
        })),
    ],
  ],
};
