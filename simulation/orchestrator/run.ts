import { Violation } from '../kernel/violation.ts';
import { mishaps } from './fault-injection.ts';
import { lookAtLosses } from './operator.ts';
import type { Fault } from './platform/faults.ts';
import { checkCapacity, quiesce, shutDown } from './quiesce.ts';
import { command } from './workload/commands.ts';
import { type Prepared, START_AT, type Tally, World } from './world.ts';

/** What came of a run. */
export interface Outcome {
  seed: string;
  commands: number;
  /** Of every event, in order. */
  hash: string;
  events: number;
  tally: Tally;
  calls: number;
  faults: Record<string, number>;
  simulatedMs: number;
  realMs: number;
  failure?: Failure;
}

export interface Failure {
  /** Such as I8; `crash` where the simulation itself, or what it runs, threw. */
  invariant: string;
  message: string;
  /** The last events around it. */
  trace: string[];
}

const TRACE_LINES = 40;
/** Commands between two looks of the operator. */
const OPERATOR_LOOKS_EACH = 25;

/** Runs `commands` commands by one seed, then lets all come to rest. Never throws. */
export async function run(prepared: Prepared, seed: string, commands: number): Promise<Outcome> {
  const startedAt = performance.now();
  const world = new World(seed, prepared);
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
  const { journal, faults, tally, scheduler } = world;
  return {
    seed,
    commands,
    tally,
    hash: journal.digest(),
    events: journal.count,
    calls: faults.calls,
    faults: Object.fromEntries(faults.counts) as Record<Fault, number>,
    simulatedMs: scheduler.now - START_AT,
    realMs: performance.now() - startedAt,
    ...(failure !== undefined && { failure }),
  };
}

async function live(world: World, commands: number): Promise<void> {
  const { scheduler, inspector, scenario, chance } = world;
  const [pace, weather] = [chance.fork('pace'), chance.fork('mishaps')];
  for (const replica of world.replicas) replica.start();
  await scheduler.runUntil(scheduler.now + 2_000);
  for (let count = 0; count < commands; count++) {
    const pauseMs = pace.happens(0.25) ? 0 : -Math.log(1 - pace.next()) * scenario.paceMs;
    await scheduler.runUntil(scheduler.now + Math.min(pauseMs, 120_000));
    await mishaps(world, weather);
    if (count % OPERATOR_LOOKS_EACH === 0) await lookAtLosses(world);
    command(world);
    await scheduler.settle();
    await checkCapacity(world);
    inspector.assertHeld();
    world.assertSound();
  }
  await quiesce(world);
  world.assertSound();
  await shutDown(world);
}

function describe({ journal }: World, error: unknown): Failure {
  if (error instanceof Violation)
    return {
      invariant: error.invariant,
      message: error.message,
      trace: [
        ...(error.words.length > 0 ? [...journal.last(TRACE_LINES, error.words), '—'] : []),
        ...journal.last(TRACE_LINES),
      ],
    };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { invariant: 'crash', message, trace: journal.last(TRACE_LINES) };
}
