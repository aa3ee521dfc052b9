import type { OrchestratorDeps } from '../../src/compose/orchestrator/orchestrator.ts';
import type { OwnerRef, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { interceptMethods } from '../kernel/intercept-methods.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Plant } from '../kernel/replica.ts';

type Ports = OrchestratorDeps;
type Around = Parameters<typeof interceptMethods>[1];

/** Changes the driver of each platform. */
export function wrapDrivers<World>(
  change: (
    driver: PlatformDriver,
    at: { world: World; process: ServerProcess; clock: Clock },
  ) => Partial<PlatformDriver>,
): Plant<Ports, World> {
  return (ports, world, process) => {
    const at = { world, process, clock: ports.clock };
    const changed = [...ports.drivers].map(
      ([name, driver]) => [name, { ...driver, ...change(driver, at) }] as const,
    );
    return { ...ports, drivers: new Map(changed) };
  };
}

/** Changes the calls that a process makes in its transactions. Some are synchronous: `around` returns these as they are. */
export function wrapTransactions<Deps extends { store: { transact: unknown } }>(
  around: Around,
): Plant<Deps, unknown> {
  return (ports) => {
    const { store } = ports as { store: Pick<Ports['store'], 'transact'> };
    const transact: typeof store.transact = (body) =>
      store.transact((tx) => body(interceptMethods(tx, around)));
    return { ...ports, store: { ...store, transact } };
  };
}

/** Machines that the driver denies: they read as gone, and listings omit them. */
export function hide(
  driver: PlatformDriver,
  isHidden: (ref: OwnerRef) => boolean,
): Pick<PlatformDriver, 'get' | 'list'> {
  return {
    get: async (ref) => (isHidden(ref) ? { answer: 'gone' } : driver.get(ref)),
    list: async () => {
      const listing = await driver.list();
      if (listing.answer !== 'listed') return listing;
      return { ...listing, items: listing.items.filter(({ ref }) => !isHidden(ref)) };
    },
  };
}

/** The id of the resource of which the ref names an attempt. */
export function idOf(ref: OwnerRef): string {
  return ref.replace(/^berth-|-g\d+$/g, '');
}
