import type { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type {
  ObservedMachine,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../../orchestrator/model/platform-driver.ts';
import { withHosts } from './hosts.fixture.ts';

export type Break = (driver: PlatformDriver, clock: VirtualClock) => Partial<PlatformDriver>;

export const done = { outcome: 'done', value: null } as const;
export const broken = (code: 'internal' | 'capacity'): Step<never> => ({
  outcome: 'failed',
  code,
  sideEffect: 'none',
  detail: 'planted',
});
export const manifest = (driver: PlatformDriver, fields: Partial<PlatformDriver['manifest']>) => ({
  manifest: { ...driver.manifest, ...fields },
});

/** Machines are on n1, but only n2 is asked. */
export const onHostThatIsNotAsked = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  create: async (spec, cookie) => {
    const step = await driver.create(spec, cookie);
    return step.outcome === 'done' ? { ...step, value: { ...step.value, host: 'n1' } } : step;
  },
  get: async (ref) => {
    const found = await driver.get(ref);
    return found.answer === 'gone' ? { ...found, hosts: { answered: ['n2'], silent: [] } } : found;
  },
});

export const listing = (
  driver: PlatformDriver,
  change: (items: ObservedMachine[]) => ObservedMachine[],
): Partial<PlatformDriver> => ({
  list: async () => {
    const found = await driver.list();
    return found.answer === 'listed' ? { ...found, items: change(found.items) } : found;
  },
});

/** Breaks some of the driver's volume calls. */
export const volumes = (
  driver: PlatformDriver,
  breaks: (volumes: VolumeDriver) => Partial<VolumeDriver>,
): Partial<PlatformDriver> => {
  const given = driver.volumes as VolumeDriver;
  return { volumes: { ...given, ...breaks(given) } };
};

/** Puts the driver on two hosts, and breaks some of its calls. */
export const onHosts = (
  driver: PlatformDriver,
  breaks: (
    hosted: PlatformDriver & Required<Pick<PlatformDriver, 'place' | 'volumes'>>,
  ) => Partial<PlatformDriver>,
): Partial<PlatformDriver> => {
  const hosted = withHosts(driver, ['n1', 'n2']) as Parameters<typeof breaks>[0];
  return { ...hosted, ...breaks(hosted) };
};
export const placedNowhere = { answer: 'placed', hosts: [] } as const;

/** Drops the limits of calls to machines. */
export const withoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  create: (spec, cookie) => driver.create(spec, cookie),
  stop: (ref, cookie) => driver.stop(ref, cookie),
  destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order),
});
export const destroyWithoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> => ({
  destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order),
});
export const volumesWithoutLimits = (driver: PlatformDriver): Partial<PlatformDriver> =>
  volumes(driver, (given) => ({
    create: (spec, cookie) => given.create(spec, cookie),
    destroy: (ref, cookie, order) => given.destroy(ref, cookie, order),
  }));
