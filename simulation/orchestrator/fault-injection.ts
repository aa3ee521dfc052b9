import type { Power } from '../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../kernel/chance.ts';
import { servesItsOwnPlatform } from './invariants/platform.ts';
import type { Machine } from './platform/platform.ts';
import type { FaultRates } from './scenario.ts';
import { injectIntoServers } from './server-faults.ts';
import type { World } from './world.ts';

type FaultName = keyof FaultRates;

/** Draws which faults happen before the next command, at the rates of the scenario, and injects them. */
export async function injectFaults(world: World, chance: Chance): Promise<void> {
  for (const name of Object.keys(world.scenario.faultRates) as FaultName[])
    if (chance.happens(world.scenario.faultRates[name])) await inject(world, chance, name);
}

async function inject(world: World, chance: Chance, name: FaultName): Promise<void> {
  switch (name) {
    case 'crash':
    case 'powerCut':
    case 'pause':
    case 'partition':
    case 'clockJump':
      return injectIntoServers(world, chance, name);
    case 'outage':
      return outage(world, chance);
    case 'revokedCredential':
      if (!world.wouldNoticeEmptyAccount) return;
      world.journal.note('platform', 'shows an empty account');
      world.tally.outages++;
      return revoke(world, chance.between(10_000, 240_000));
    case 'wrongPlatform':
      return misconfigure(world, chance);
    case 'cordon':
      return cordon(world, chance);
    default:
      return injectIntoMachine(world, chance, name);
  }
}

function revoke(world: World, ms: number): void {
  world.callFaults.revoke(ms);
}

const LONG_ENOUGH_TO_START_MS = 2_000;

/** A server is started again with the driver of another platform, on which every machine would look gone. */
async function misconfigure(world: World, chance: Chance): Promise<void> {
  const hasLive = world.inspector.history.instances().some(({ status }) => status !== 'DESTROYED');
  const replica = chance.pick(world.replicas);
  if (!hasLive || replica.process === undefined) return;
  world.journal.note(replica.name, 'is configured for another platform');
  replica.end();
  replica.start('another');
  await world.scheduler.runUntil(world.scheduler.now + LONG_ENOUGH_TO_START_MS);
  const isServing = replica.serving !== undefined && replica.platform === 'another';
  world.inspector.check(() => servesItsOwnPlatform(replica.name, isServing));
  replica.end();
  replica.start();
}

function outage(world: World, chance: Chance): void {
  const ms = chance.happens(0.7) ? chance.between(20_000, 300_000) : chance.between(300_000, 3_600_000);
  world.journal.note('platform', `is away for ${Math.round(ms / 1_000)} s`);
  world.tally.outages++;
  world.callFaults.beginOutage(ms);
}

/** Some of an offer's units go for a while, or more are there for good; or nothing can be counted for a while. */
function cordon(world: World, chance: Chance): void {
  const { troubled, scheduler, journal } = world;
  if (chance.happens(0.15)) {
    const ms = chance.between(60_000, 1_800_000);
    journal.note('platform', `counts nothing for ${Math.round(ms / 1_000)} s`);
    world.callFaults.stopCounting(ms);
    return;
  }
  const { capacity } = troubled;
  const place = chance.pick(capacity.places);
  const units = capacity.units(place.offerId, place.datacenter);
  const by = units === 0 || chance.happens(0.2) ? 1 : -chance.whole(1, units);
  capacity.change(place, by);
  journal.note('platform', `has ${units + by} units of ${place.offerId} in ${place.datacenter}`);
  if (by > 0) return;
  scheduler.after(chance.between(10_000, chance.happens(0.3) ? 1_800_000 : 180_000), () => {
    if (world.isCalm) return;
    capacity.change(place, -by);
    journal.note('platform', `has ${-by} more units of ${place.offerId} in ${place.datacenter} again`);
  });
}

/** A fault of one machine. */
function injectIntoMachine(
  world: World,
  chance: Chance,
  name: 'reclaim' | 'reap' | 'powerOff' | 'suspend' | 'breakDown' | 'loss' | 'move',
): void {
  const fitting = world.troubled.machines.all().filter((machine) => fits(name, machine));
  if (fitting.length === 0) return;
  const machine = chance.pick(fitting);
  const { ref } = machine.spec;
  world.journal.note('platform', `${name} of ${ref}`);
  if (name === 'reclaim' || name === 'breakDown') world.inspector.machineLost(ref);
  const { addresses, scheduler, machineChance } = world;
  const { machines } = world.troubled;
  const turn = (power: Power, forMs: number | null): void => {
    const until = forMs === null ? null : scheduler.now + forMs;
    machines.change(machine, { power, until, isRestarting: false });
  };
  /** Its operator resumes it: before the grace of a pause is over, or too late. */
  const suspend = (): void => {
    machines.change(machine, { power: 'paused', isRestarting: false });
    scheduler.after(machineChance.between(5_000, 300_000), () => {
      const current = machines.of(ref).find(({ number }) => number === machine.number);
      if (current?.power === 'paused') machines.change(current, { power: 'running' });
    });
  };
  const move = (): void => {
    machines.change(machine, { ip: addresses.take() });
    addresses.free(machine.ip);
  };
  const faults = {
    reclaim: () => {
      machines.change(machine, { cause: 'reclaimed' });
      turn('destroying', machineChance.between(2_000, 40_000));
    },
    reap: () => machines.remove(machine, 'reaped'),
    powerOff: () => turn('stopping', 1_000),
    suspend,
    breakDown: () => turn('failed', null),
    loss: () => machines.remove(machine, 'lost'),
    move,
  };
  faults[name]();
}

function fits(name: FaultName, { power, spec }: Machine): boolean {
  if (name === 'reap') return power === 'stopped';
  if (name === 'reclaim') return power === 'running' && spec.offerId === 'spot';
  return power === 'running';
}
