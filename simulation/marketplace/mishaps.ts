import type { Instance } from '../../src/contract/instance.ts';
import type { Chance } from '../world/chance.ts';
import type { TrueProvider } from './providers/truth.ts';
import type { MarketMishaps } from './scenario.ts';
import type { MarketWorld } from './world.ts';

/** Lets happen what the scenario says may happen between two commands. */
export function marketMishaps(world: MarketWorld, chance: Chance): void {
  for (const name of Object.keys(world.scenario.mishaps) as (keyof MarketMishaps)[])
    if (chance.happens(world.scenario.mishaps[name])) happen(world, chance, name);
}

function happen(world: MarketWorld, chance: Chance, name: keyof MarketMishaps): void {
  const provider = chance.pick(world.providers);
  world.journal.note('world', `${name} ${provider.id}`);
  switch (name) {
    case 'crash':
      chance.pick(world.replicas).crash('');
      break;
    case 'pause':
      chance.pick(world.replicas).pause(chance);
      break;
    case 'outage':
      outage(world, chance, provider);
      break;
    case 'soldOut':
      soldOut(world, chance, provider);
      break;
    default:
      befall(world, chance, provider, name);
  }
}

function befall(world: MarketWorld, chance: Chance, provider: TrueProvider, name: Befalls): void {
  const candidates = provider.living.filter((instance) => befalls[name].fits(instance, provider));
  if (candidates.length === 0) return;
  const instance = chance.pick(candidates);
  world.journal.note('world', `${name} ${instance.id}`);
  befalls[name].happen(provider, instance, chance, world);
  provider.watch();
}

function outage(world: MarketWorld, chance: Chance, provider: TrueProvider): void {
  world.tally.outages++;
  provider.outageUntil = world.scheduler.now + chance.pick([5_000, 60_000, 240_000]);
}

function soldOut(world: MarketWorld, chance: Chance, { plain }: TrueProvider): void {
  const configuration = chance.pick(plain.configurations);
  configuration.available = false;
  world.scheduler.after(chance.whole(10_000, 120_000), () => {
    configuration.available = true;
  });
}

type Befalls = Exclude<keyof MarketMishaps, 'crash' | 'pause' | 'outage' | 'soldOut'>;
const isSpot = ({ configuration_id: id }: Instance): boolean => id === 'spot';
const isOnline = ({ status }: Instance): boolean => status === 'ONLINE';

/** What becomes of one machine. */
const befalls: Readonly<
  Record<
    Befalls,
    {
      fits: (instance: Instance, provider: TrueProvider) => boolean;
      happen: (provider: TrueProvider, instance: Instance, chance: Chance, world: MarketWorld) => void;
    }
  >
> = {
  reclaim: {
    fits: (instance) => isSpot(instance) && isOnline(instance),
    happen: ({ plain }, { id }) => plain.reclaim(id),
  },
  blink: {
    fits: (instance, { machines }) =>
      !isSpot(instance) && isOnline(instance) && machines.get(instance.id)?.hasBlinked === false,
    happen: (provider, { id }, chance, { scenario, scheduler }) => {
      const machine = provider.machines.get(id);
      const ms = chance.whole(5_000, Math.floor(scenario.options.polling.blinkMs * 0.8));
      if (machine !== undefined)
        Object.assign(machine, { hasBlinked: true, blinksUntil: scheduler.now + ms });
      provider.plain.blink(id, chance.pick(['STOPPED', 'OFFLINE', 'STOPPING', 'DESTROYING']), ms);
    },
  },
  break: {
    fits: ({ status }) => status === 'ONLINE' || status === 'PROVISIONING',
    happen: ({ plain }, { id }) => plain.set(id, { status: 'ERROR', error: 'the host broke' }),
  },
  vanish: { fits: isOnline, happen: ({ plain }, { id }) => plain.vanish(id) },
  reprice: {
    fits: (instance) => isSpot(instance) && isOnline(instance),
    happen: ({ plain }, { id }, chance) => plain.reprice(id, chance.whole(300_001, 2_999_999) / 1_000_000),
  },
  powerOff: {
    fits: (instance) => !isSpot(instance) && isOnline(instance),
    happen: (provider, { id }) => {
      const machine = provider.machines.get(id);
      if (machine !== undefined) machine.hasBlinked = true;
      provider.plain.set(id, { status: 'STOPPED' });
    },
  },
};
