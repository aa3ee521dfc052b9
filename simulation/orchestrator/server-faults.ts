import type { Chance } from '../kernel/chance.ts';
import type { OrchestratorWorld } from './replicas/replica.ts';

export type ServerFault = 'crash' | 'powerCut' | 'pause' | 'partition' | 'clockJump';

export async function injectIntoServers(
  world: OrchestratorWorld,
  chance: Chance,
  name: ServerFault,
): Promise<void> {
  switch (name) {
    case 'crash':
      return chance.pick(world.replicas).crash('');
    case 'powerCut':
      return cutPower(world);
    case 'pause':
      return chance.pick(world.replicas).pause(chance);
    case 'partition':
      return partition(world, chance);
    case 'clockJump':
      return jump(world, chance);
  }
}

async function cutPower(world: OrchestratorWorld): Promise<void> {
  world.journal.note('world', 'loses its power');
  world.tally.powerCuts++;
  for (const replica of world.replicas) replica.end();
  await world.scheduler.settle();
  await world.database.cutPower();
  await world.inspector.recovered();
  for (const replica of world.replicas) replica.start();
}

function partition(world: OrchestratorWorld, chance: Chance): void {
  const { feed, name } = chance.pick(world.replicas);
  if (feed === undefined || world.scenario.replicas === 1) return;
  world.journal.note(name, 'hears of no commits');
  world.tally.partitions++;
  feed.partition();
  world.scheduler.after(chance.between(500, 90_000), () => feed.heal());
}

/** For how long the clock of one of several servers stays wrong at most. */
const SET_RIGHT_WITHIN_MS = 40_000;

/** One server alone may keep a wrong clock. Several share leases by their clocks: each is set right soon. */
function jump(world: OrchestratorWorld, chance: Chance): void {
  const replica = chance.pick(world.replicas);
  const ms = chance.pick([1_000, 30_000, 600_000, 3_600_000]) * chance.between(-1, 1);
  replica.clockOffsetMs = Math.round(ms);
  world.journal.note(replica.name, `has a clock that is ${replica.clockOffsetMs} ms off`);
  replica.mostOffMs = Math.max(replica.mostOffMs, Math.abs(replica.clockOffsetMs));
  world.tally.clockJumps++;
  if (world.scenario.replicas === 1) return;
  world.scheduler.after(chance.between(1_000, SET_RIGHT_WITHIN_MS), () => {
    replica.clockOffsetMs = 0;
  });
}
