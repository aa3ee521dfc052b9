import type { Placing } from '../../../orchestrator/model/platform-driver.ts';
import { type Bench, CheckFailure, show, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** A resource that is made on a host: a machine or a volume. */
interface Placed {
  name: string;
  place: (host: string | undefined, avoidHosts: readonly string[]) => Promise<Placing>;
  /** Makes it and returns the host that holds it. */
  make: (host: string) => Promise<string | undefined>;
}

const NO_PLACE = 'the driver has no place: the platform chooses';

export const placementChecks: readonly DriverCheck[] = [
  {
    id: 'place',
    title: 'makes a machine on the host chosen from the answer of place',
    why: 'Berth records the host before the create, and looks for the machine and removes it only there.',
    remedy:
      'Make the machine on spec.host, and show that as its host; where it has no room, fail with code capacity.',
    run: async (bench) => onEachHost(machineOf(bench)),
  },
  {
    id: 'place-bound',
    title: 'answers place only with the host that the machine is bound to',
    why: 'The volumes of a machine are on one host, so it must run there.',
    remedy: 'Where spec.host is set, answer place with that host alone, or refuse it.',
    run: async (bench) => namesOnlyTheBound(machineOf(bench)),
  },
  {
    id: 'place-avoid',
    title: 'answers place without hosts to avoid, and refuses when none is left',
    why: 'An operator who drains a host waits until it is empty: nothing new may land there.',
    remedy: 'Leave out the hosts of avoid_hosts; where no other has room, answer refused with code capacity.',
    run: async (bench) => namesNoneToAvoid(machineOf(bench)),
  },
  {
    id: 'volume-place',
    title: 'makes a volume on the host chosen from the answer of volumes.place',
    why: 'A volume on a host other than the recorded one cannot be attached.',
    remedy:
      'Make the volume on spec.host, and show that as its host; where it has no room, fail with code capacity.',
    run: async (bench) => onEachHost(volumeOf(bench)),
  },
  {
    id: 'volume-place-bound',
    title: 'answers volumes.place only with the host that the volume is bound to',
    why: 'The machine that needs the volume is on that host.',
    remedy: 'Where spec.host is set, answer volumes.place with that host alone, or refuse it.',
    run: async (bench) => namesOnlyTheBound(volumeOf(bench)),
  },
  {
    id: 'volume-place-avoid',
    title: 'answers volumes.place without hosts to avoid, and refuses when none is left',
    why: 'An operator who drains a host waits until it is empty: nothing new may land there.',
    remedy: 'Leave out the hosts of avoid_hosts; where no other has room, answer refused with code capacity.',
    run: async (bench) => namesNoneToAvoid(volumeOf(bench)),
  },
];

function machineOf(bench: Bench): Placed {
  const { driver } = bench;
  const { place } = driver;
  if (place === undefined) throw new Untried(NO_PLACE);
  const ref = bench.ref('a');
  return {
    name: 'place',
    place: (host, avoidHosts) => place.call(driver, bench.spec(ref, bound(host)), avoidHosts),
    make: async (host) => {
      const made = await bench.create(ref, { host });
      await bench.destroy(ref);
      return made.host;
    },
  };
}

function volumeOf(bench: Bench): Placed {
  const { volumes } = bench.driver;
  const place = volumes?.place;
  if (volumes === undefined || place === undefined) throw new Untried(NO_PLACE);
  const ref = bench.volumeRef('v');
  return {
    name: 'volumes.place',
    place: (host, avoidHosts) =>
      place.call(volumes, { ...bench.context.volumeSpec(ref), ...bound(host) }, avoidHosts),
    make: async (host) => {
      const made = await bench.createVolume(volumes, ref, { host });
      await bench.destroyVolume(volumes, ref);
      return made.host;
    },
  };
}

const bound = (host: string | undefined): { host?: string } => (host === undefined ? {} : { host });

async function namedBy({ name, place }: Placed): Promise<string[]> {
  const placing = await place(undefined, []);
  if (placing.answer !== 'placed' || placing.hosts.length === 0)
    throw new CheckFailure(`${name} names no host: ${show(placing)}`);
  return placing.hosts.map(({ host }) => host);
}

async function onEachHost(placed: Placed): Promise<void> {
  // The driver might choose the best host by chance, so the last ones are used.
  for (const host of (await namedBy(placed)).slice(-2)) {
    const made = await placed.make(host);
    if (made !== host)
      throw new CheckFailure(`create was given the host ${host}, and is on ${made ?? 'no reported host'}`);
  }
}

async function namesOnlyTheBound(placed: Placed): Promise<void> {
  for (const host of (await namedBy(placed)).slice(-2)) {
    const placing = await placed.place(host, []);
    const named = placing.answer === 'placed' ? placing.hosts : [];
    if (named.length !== 1 || named[0]?.host !== host)
      throw new CheckFailure(`${placed.name} for the host ${host} answers ${show(placing)}`);
  }
}

async function namesNoneToAvoid(placed: Placed): Promise<void> {
  const hosts = await namedBy(placed);
  for (const avoided of [hosts.slice(0, 1), hosts]) {
    const placing = await placed.place(undefined, avoided);
    const named = placing.answer === 'placed' ? placing.hosts.map(({ host }) => host) : [];
    const isRight =
      avoided.length < hosts.length
        ? named.length > 0 && !named.some((host) => avoided.includes(host))
        : placing.answer === 'refused';
    if (!isRight)
      throw new CheckFailure(
        `${placed.name} with ${avoided.join(', ')} to be avoided answers ${show(placing)}`,
      );
  }
}
