import { START_AT } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { Journal } from '../kernel/journal.ts';
import type { Tally } from '../kernel/tally.ts';
import { Violation } from '../kernel/violation.ts';
import type { BaseWorld } from '../kernel/world.ts';

/** The result of a run. */
export interface Outcome {
  seed: string;
  commands: number;
  /** Of every event, in order. */
  hash: string;
  tally: Tally;
  /** Calls of the servers to what they run on: a platform, or providers. */
  calls: number;
  /** How many of these calls met each fault. */
  faults: Record<string, number>;
  simulatedMs: number;
  failure?: Failure;
}

export interface Failure {
  /** Such as I8; `crash` where the simulation itself, or what it runs, threw. */
  invariant: string;
  message: string;
  /** The last events that name what the invariant is about, then the last of all. */
  trace: string[];
}

/** What one simulation does at each point of the run loop. */
export interface RunSteps<World extends BaseWorld> {
  /** Before the servers start. */
  begin?(world: World): Promise<void>;
  /** The pause before the next command, from the one that was drawn. */
  limitPause(drawnMs: number): number;
  /** Faults of processes, machines and networks, and what the operator does about them. */
  beforeCommand(world: World, faults: Chance, count: number): Promise<void>;
  /** Sends a command; its reply arrives in the course of time. */
  command(world: World): void;
  /** Throws a `Violation` for an invariant that does not hold. */
  check(world: World, count: number): Promise<void>;
  /** Ends all faults, waits until all work is done, and checks what then must hold. */
  quiesce(world: World): Promise<void>;
  /** Ends the servers in order, and checks that they leave nothing behind. */
  shutDown(world: World): Promise<void>;
}

const TRACE_LINES = 40;
const START_WITHIN_MS = 2_000;

/** Runs `commands` commands in a world that was made of the seed, then quiesces and ends it. Never throws. */
export async function runWorld<World extends BaseWorld>(
  world: World,
  steps: RunSteps<NoInfer<World>>,
  { seed, commands }: { seed: string; commands: number },
): Promise<Outcome> {
  let failure: Failure | undefined;
  try {
    await live(world, steps, commands);
  } catch (error) {
    failure = toFailure(error, world.journal);
  }
  world.isOver = true;
  for (const replica of world.replicas) replica.end();
  await world.scheduler.settle();
  await world.database.close();
  const { journal, scheduler, tally, calls, faultCounts } = world;
  return {
    seed,
    commands,
    tally,
    calls,
    hash: journal.digest(),
    faults: Object.fromEntries(faultCounts),
    simulatedMs: scheduler.now - START_AT,
    failure,
  };
}

async function live<World extends BaseWorld>(
  world: World,
  steps: RunSteps<World>,
  commands: number,
): Promise<void> {
  const { scheduler, scenario, chance } = world;
  // Seeds mean what they mean by these labels: another label makes every seed another run.
  const pace = chance.fork('pace');
  const faults = chance.fork('mishaps');
  await steps.begin?.(world);
  for (const replica of world.replicas) replica.start();
  await scheduler.runUntil(scheduler.now + START_WITHIN_MS);
  for (let count = 0; count < commands; count++) {
    const pauseMs = pace.happens(0.25) ? 0 : -Math.log(1 - pace.next()) * scenario.paceMs;
    await scheduler.runUntil(scheduler.now + steps.limitPause(pauseMs));
    await steps.beforeCommand(world, faults, count);
    steps.command(world);
    await scheduler.settle();
    await steps.check(world, count);
    world.assertSound();
  }
  await steps.quiesce(world);
  world.assertSound();
  await steps.shutDown(world);
}

function toFailure(error: unknown, journal: Journal): Failure {
  const last = journal.last(TRACE_LINES);
  if (!(error instanceof Violation)) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { invariant: 'crash', message, trace: last };
  }
  const { invariant, message, words } = error;
  const about = words.length > 0 ? [...journal.last(TRACE_LINES, words), '—'] : [];
  return { invariant, message, trace: [...about, ...last] };
}
