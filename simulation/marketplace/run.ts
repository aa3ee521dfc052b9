import { Violation } from '../kernel/violation.ts';
import type { Failure, Outcome } from '../orchestrator/run.ts';
import { START_AT } from '../orchestrator/world.ts';
import type { MarketPrepared } from './accounts.ts';
import { marketMishaps } from './fault-injection.ts';
import { booksAreExact } from './invariants/books.ts';
import { machinesAreSingle } from './invariants/rest.ts';
import { credit } from './operator.ts';
import { quiesceMarket, shutDownMarket } from './quiesce.ts';
import { marketCommand } from './workload/commands.ts';
import { MarketWorld } from './world.ts';

const TRACE_LINES = 40;
const BOOKS_EACH = 10;
const MOST_PAUSE_MS = 180_000;

/** Runs `commands` commands by one seed, then lets all come to rest. Never throws. */
export async function runMarket(prepared: MarketPrepared, seed: string, commands: number): Promise<Outcome> {
  const startedAt = performance.now();
  const world = new MarketWorld(seed, prepared);
  let failure: Failure | undefined;
  try {
    await live(world, commands);
  } catch (error) {
    failure = describe(world, error);
  }
  world.isOver = true;
  for (const replica of world.replicas) replica.end();
  await world.scheduler.settle();
  await world.database.close();
  const { journal, faults, scheduler } = world;
  const { calls, ...tally } = world.tally;
  return {
    seed,
    commands,
    tally,
    calls,
    hash: journal.digest(),
    events: journal.count,
    faults: Object.fromEntries(faults),
    simulatedMs: scheduler.now - START_AT,
    realMs: performance.now() - startedAt,
    ...(failure !== undefined && { failure }),
  };
}

async function live(world: MarketWorld, commands: number): Promise<void> {
  const { scheduler, scenario, chance, users } = world;
  const [pace, weather] = [chance.fork('pace'), chance.fork('mishaps')];
  for (const { teamId, name } of users.all)
    await credit(world, teamId, scenario.creditMicroUsd, `opening-${name}`);
  for (const replica of world.replicas) replica.start();
  await scheduler.runUntil(scheduler.now + 2_000);
  for (let count = 0; count < commands; count++) {
    const pauseMs = pace.happens(0.25) ? 0 : -Math.log(1 - pace.next()) * scenario.paceMs;
    await scheduler.runUntil(scheduler.now + Math.ceil(Math.min(pauseMs, MOST_PAUSE_MS)));
    await marketMishaps(world, weather);
    marketCommand(world);
    await scheduler.settle();
    machinesAreSingle(world);
    if (count % BOOKS_EACH === 0) await booksAreExact(world);
    world.assertSound();
  }
  await quiesceMarket(world);
  world.assertSound();
  await shutDownMarket(world);
}

function describe({ journal }: MarketWorld, error: unknown): Failure {
  const last = journal.last(TRACE_LINES);
  if (!(error instanceof Violation)) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { invariant: 'crash', message, trace: last };
  }
  const { invariant, message, words } = error;
  const about = words.length > 0 ? [...journal.last(TRACE_LINES, words), '—'] : [];
  return { invariant, message, trace: [...about, ...last] };
}
