import type { Instance } from '../../src/contract/instance.ts';
import type { Chance } from '../kernel/chance.ts';
import type { SimulatedProvider } from './providers/simulated-provider.ts';
import type { MarketFaultRates } from './scenario.ts';
import type { MarketWorld } from './world.ts';

type FaultName = keyof MarketFaultRates;

/** Draws which faults happen before the next command, at the rates of the scenario, and injects them. */
export async function injectMarketFaults(world: MarketWorld, chance: Chance): Promise<void> {
  for (const name of Object.keys(world.scenario.faultRates) as FaultName[])
    if (chance.happens(world.scenario.faultRates[name])) await inject(world, chance, name);
}

async function inject(world: MarketWorld, chance: Chance, name: FaultName): Promise<void> {
  const provider = chance.pick(world.providers);
  world.journal.note('world', `${name} ${provider.id}`);
  switch (name) {
    case 'crash':
      chance.pick(world.replicas).crash('');
      break;
    case 'powerCut':
      return cutPower(world);
    case 'clockJump':
      return jump(world, chance);
    case 'volumeBreak':
      return breakVolume(world, chance, provider);
    case 'pause':
      chance.pick(world.replicas).pause(chance);
      break;
    case 'outage':
      outage(world, chance, provider);
      break;
    case 'denial':
      denial(world, chance, provider);
      break;
    case 'soldOut':
      soldOut(world, chance, provider);
      break;
    default:
      injectIntoMachine(world, chance, provider, name);
  }
}

async function cutPower(world: MarketWorld): Promise<void> {
  world.tally.powerCuts++;
  for (const replica of world.replicas) replica.end();
  await world.scheduler.settle();
  await world.database.cutPower();
  await world.inspector.recovered();
  for (const replica of world.replicas) replica.start();
}

/** For how long a clock that was set wrong stays wrong at most. */
const SET_RIGHT_WITHIN_MS = 40_000;

/** Sets a clock wrong, and right again soon: the servers share leases and bills by their clocks. */
function jump(world: MarketWorld, chance: Chance): void {
  if (world.scenario.skewMs === 0) return;
  const replica = chance.pick(world.replicas);
  replica.clockOffsetMs = chance.pick([1, -1]) * chance.pick([1_000, 30_000, 3_600_000]);
  world.journal.note(replica.name, `has a clock that is set ${replica.clockOffsetMs} ms off`);
  world.tally.clockJumps++;
  world.scheduler.after(chance.whole(1_000, SET_RIGHT_WITHIN_MS), () => {
    replica.clockOffsetMs = 0;
  });
}

function breakVolume(world: MarketWorld, chance: Chance, { plain }: SimulatedProvider): void {
  const whole = plain.volumes.filter(({ status }) => status !== 'DELETING' && status !== 'CREATING');
  if (whole.length === 0) return;
  const { id } = chance.pick(whole);
  world.journal.note('world', `breaks ${id}`);
  plain.breakVolume(id);
}

function injectIntoMachine(
  world: MarketWorld,
  chance: Chance,
  provider: SimulatedProvider,
  name: MachineFault,
): void {
  const candidates = provider.living.filter((instance) => machineFaults[name].fits(instance, provider));
  if (candidates.length === 0) return;
  const instance = chance.pick(candidates);
  world.journal.note('world', `${name} ${instance.id}`);
  machineFaults[name].inject(provider, instance, chance, world);
  provider.recordStatuses();
}

function outage(world: MarketWorld, chance: Chance, provider: SimulatedProvider): void {
  world.tally.outages++;
  const forMs = chance.pick([5_000, 60_000, 240_000]);
  provider.outageUntil = world.scheduler.now + forMs;
}

/** Long enough for the 404s of all resources to be confirmed. */
function denial(world: MarketWorld, chance: Chance, provider: SimulatedProvider): void {
  const forMs = chance.pick([60_000, 240_000, 400_000]);
  provider.deniesUntil = world.scheduler.now + forMs;
}

function soldOut(world: MarketWorld, chance: Chance, { plain }: SimulatedProvider): void {
  const configuration = chance.pick(plain.configurations);
  configuration.available = false;
  const forMs = chance.whole(10_000, 120_000);
  world.scheduler.after(forMs, () => {
    configuration.available = true;
  });
}

type MachineFault = Exclude<
  FaultName,
  'crash' | 'powerCut' | 'clockJump' | 'pause' | 'outage' | 'denial' | 'soldOut' | 'volumeBreak'
>;
const isSpot = ({ configuration_id: id }: Instance): boolean => id === 'spot';
const isOnline = ({ status }: Instance): boolean => status === 'ONLINE';

/** The faults of one machine, and which machines can have them. */
const machineFaults: Readonly<
  Record<
    MachineFault,
    {
      fits: (instance: Instance, provider: SimulatedProvider) => boolean;
      inject: (provider: SimulatedProvider, instance: Instance, chance: Chance, world: MarketWorld) => void;
    }
  >
> = {
  reclaim: {
    fits: (instance) => isSpot(instance) && isOnline(instance),
    inject: ({ plain }, { id }) => plain.reclaim(id),
  },
  blink: {
    fits: (instance, { machines }) =>
      !isSpot(instance) && isOnline(instance) && machines.get(instance.id)?.hasBlinked === false,
    inject: (provider, { id }, chance, { scenario, scheduler }) => {
      const machine = provider.machines.get(id);
      const ms = chance.whole(5_000, Math.floor(scenario.options.polling.blinkMs * 0.8));
      if (machine !== undefined)
        Object.assign(machine, { hasBlinked: true, blinksUntil: scheduler.now + ms });
      provider.plain.blink(id, chance.pick(['STOPPED', 'OFFLINE', 'STOPPING', 'DESTROYING']), ms);
    },
  },
  break: {
    fits: ({ status }) => status === 'ONLINE' || status === 'PROVISIONING',
    inject: ({ plain }, { id }) => plain.set(id, { status: 'ERROR', error: 'the host broke' }),
  },
  vanish: { fits: isOnline, inject: ({ plain }, { id }) => plain.vanish(id) },
  reprice: {
    fits: (instance) => isSpot(instance) && isOnline(instance),
    inject: ({ plain }, { id }, chance) => plain.reprice(id, chance.whole(300_001, 2_999_999) / 1_000_000),
  },
  powerOff: {
    fits: (instance) => !isSpot(instance) && isOnline(instance),
    inject: (provider, { id }) => {
      const machine = provider.machines.get(id);
      if (machine !== undefined) machine.hasBlinked = true;
      provider.plain.set(id, { status: 'STOPPED' });
    },
  },
};
