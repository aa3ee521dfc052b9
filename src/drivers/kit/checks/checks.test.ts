import { expect, it } from 'vitest';
import { anOrder } from '../../../../testing/orchestrator-rows.ts';
import { VirtualClock } from '../../../../testing/virtual-clock.ts';
import type {
  ObservedMachine,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../../orchestrator/model/platform-driver.ts';
import { createSimulator } from '../../simulator/platform/simulator.ts';
import { machineSpec } from '../../simulator/simulator.fixture.ts';
import type { DriverContext } from './bench.ts';
import { runCheck } from './check.ts';
import { withHosts } from './hosts.fixture.ts';
import { driverChecks } from './index.ts';

type Break = (driver: PlatformDriver, clock: VirtualClock) => Partial<PlatformDriver>;

const done = { outcome: 'done', value: null } as const;
const broken = (code: 'internal' | 'capacity'): Step<never> => ({
  outcome: 'failed',
  code,
  sideEffect: 'none',
  detail: 'planted',
});
const manifest = (driver: PlatformDriver, fields: Partial<PlatformDriver['manifest']>) => ({
  manifest: { ...driver.manifest, ...fields },
});

/** Machines are on n1, but only n2 is asked. */
const onHostThatIsNotAsked = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  create: async (spec, cookie) => {
    const step = await driver.create(spec, cookie);
    return step.outcome === 'done' ? { ...step, value: { ...step.value, host: 'n1' } } : step;
  },
  get: async (ref) => {
    const found = await driver.get(ref);
    return found.answer === 'gone' ? { ...found, hosts: { answered: ['n2'], silent: [] } } : found;
  },
});

const listing = (
  driver: PlatformDriver,
  change: (items: ObservedMachine[]) => ObservedMachine[],
): Partial<PlatformDriver> => ({
  list: async () => {
    const found = await driver.list();
    return found.answer === 'listed' ? { ...found, items: change(found.items) } : found;
  },
});

/** Breaks some of the driver's volume calls. */
const volumes = (
  driver: PlatformDriver,
  breaks: (volumes: VolumeDriver) => Partial<VolumeDriver>,
): Partial<PlatformDriver> => {
  const given = driver.volumes as VolumeDriver;
  return { volumes: { ...given, ...breaks(given) } };
};

/** Puts the driver on two hosts, and breaks some of its calls. */
const onHosts = (
  driver: PlatformDriver,
  breaks: (
    hosted: PlatformDriver & Required<Pick<PlatformDriver, 'place' | 'volumes'>>,
  ) => Partial<PlatformDriver>,
): Partial<PlatformDriver> => {
  const hosted = withHosts(driver, ['n1', 'n2']) as Parameters<typeof breaks>[0];
  return { ...hosted, ...breaks(hosted) };
};
const placedNowhere = { answer: 'placed', hosts: [] } as const;

/** Drops the limits of calls to machines. */
const withoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  create: (spec, cookie) => driver.create(spec, cookie),
  stop: (ref, cookie) => driver.stop(ref, cookie),
  destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order),
});
const destroyWithoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order),
});
const volumesWithoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> =>
  volumes(driver, (given) => ({
    create: (spec, cookie) => given.create(spec, cookie),
    destroy: (ref, cookie, order) => given.destroy(ref, cookie, order),
  }));

let copies = 0;

/** Defects of a driver, by the check that must detect them. */
const defects: Record<string, [defect: string, breaks: Break][]> = {
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
  place: [
    [
      'makes everything on the best host',
      (driver) =>
        onHosts(driver, (hosted) => ({
          create: ({ host: _host, ...spec }, cookie) => hosted.create(spec, cookie),
        })),
    ],
    ['names none', (driver) => onHosts(driver, () => ({ place: async () => placedNowhere }))],
  ],
  'place-bound': [
    [
      'names another',
      (driver) =>
        onHosts(driver, (hosted) => ({
          place: ({ host: _host, ...spec }, avoidHosts) => hosted.place(spec, avoidHosts),
        })),
    ],
  ],
  'place-avoid': [
    [
      'names a host to avoid',
      (driver) => onHosts(driver, (hosted) => ({ place: (spec) => hosted.place(spec, []) })),
    ],
    [
      'names no host instead of refusing',
      (driver) =>
        onHosts(driver, (hosted) => ({
          place: async (spec, avoidHosts) => {
            const placing = await hosted.place(spec, avoidHosts);
            return placing.answer === 'refused' ? placedNowhere : placing;
          },
        })),
    ],
  ],
  'volume-place': [
    [
      'makes everything on the best host',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            create: ({ host: _host, ...spec }, cookie) => given.create(spec, cookie),
          })),
        ),
    ],
  ],
  'volume-place-bound': [
    [
      'names none',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            place: async (spec, avoidHosts) =>
              spec.host === undefined ? (given.place?.(spec, avoidHosts) ?? placedNowhere) : placedNowhere,
          })),
        ),
    ],
  ],
  'volume-place-avoid': [
    [
      'names a host to avoid',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            place: async (spec) => given.place?.(spec, []) ?? placedNowhere,
          })),
        ),
    ],
  ],
  'volume-copy': [
    [
      'moves it instead',
      (driver, clock) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            copy: async (ref, spec, cookie) => {
              await given.destroy(ref, null, anOrder);
              await clock.advance(1_000);
              return given.create(spec, cookie);
            },
          })),
        ),
    ],
    [
      'answers with the original',
      (driver) =>
        onHosts(driver, (hosted) =>
          volumes(hosted, (given) => ({
            copy: async (ref, spec, cookie) => {
              const step = await given.create(spec, cookie);
              return step.outcome === 'done' ? { ...step, value: { ...step.value, ref } } : step;
            },
          })),
        ),
    ],
  ],
  deadline: [
    ['ignores the deadline', withoutLimits],
    ['destroys after it', destroyWithoutLimits],
    ['makes volumes after it', volumesWithoutLimits],
  ],
  'cancel-before': [
    ['ignores the signal', withoutLimits],
    ['destroys after it', destroyWithoutLimits],
    ['makes volumes after it', volumesWithoutLimits],
  ],
  cancel: [
    ['never settles the create', () => ({ create: () => new Promise(() => undefined) })],
    [
      'settles the create and keeps working',
      (driver, clock) => ({
        create: async (spec) => {
          clock.setTimer(3_000, () => void driver.create(spec, null));
          return broken('internal');
        },
      }),
    ],
  ],
  fence: [
    ['declares fences without comparing them', destroyWithoutLimits],
    ['does not compare the fences of volumes', volumesWithoutLimits],
  ],
  'volume-survives': [
    [
      'destroys the volume with its machine',
      (driver) => ({
        destroy: async (ref, cookie) => {
          await driver.volumes?.destroy('suite-v', null, anOrder);
          return driver.destroy(ref, cookie, anOrder);
        },
      }),
    ],
  ],
};

const cases = Object.entries(defects).flatMap(([id, list]) =>
  list.map(([defect, breaks]) => ({ id, defect, breaks })),
);

it.each(cases)('$id detects a driver that $defect', async ({ id, breaks }) => {
  const clock = new VirtualClock();
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
  const simulator = await createSimulator({ stateFile: ':memory:', capacity }, clock);
  const driver: PlatformDriver = { ...simulator, ...breaks(simulator, clock) };
  const context: DriverContext = {
    driver,
    machineSpec: (ref) => machineSpec({ ref }),
    volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
    units: 2,
    wait: (ms) => clock.advance(ms),
    now: () => clock.now(),
    impossible: { invalid: { datacenter: 'nowhere' } },
    removeReleased: async () => undefined,
    openUnreachable: async () => ({
      ...driver,
      list: async () => ({ answer: 'unknown', reason: 'planted' }),
      close: async () => undefined,
    }),
  };
  const check = driverChecks.find((found) => found.id === id);
  if (check === undefined) throw new Error(`there is no check ${id}`);
  const result = await runCheck(check, context);
  await simulator.close();
  expect(result).toMatchObject({ outcome: 'failed', problem: expect.not.stringContaining('a call threw') });
});

it('gives each check a unique id and a reason', () => {
  const ids = driverChecks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { id, why } of driverChecks) {
    expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(why).toMatch(/\.$/);
  }
});
