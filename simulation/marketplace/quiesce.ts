import { findViolation, hold, nothingIsLeft } from '../kernel/violation.ts';
import { booksAreExact, ledgerVerifies } from './invariants/books.ts';
import {
  billsAgree,
  billsAreFresh,
  deploymentsRest,
  keysAreGone,
  machinesArePolled,
  machinesAreSingle,
  mailsAreSent,
  slicesAreRolledUp,
  volumesRest,
} from './invariants/quiescence.ts';
import { acceptAllLosses, cleanUpAllLost } from './operator.ts';
import type { MarketWorld } from './world.ts';

const STEP_MS = 30_000;
/** Longer than every backoff, timeout, lease and confirmation. */
const LONGEST_MS = 30 * 60_000;
/** By then a provider that denied everything has shown its resources again. */
const KNOWN_AGAIN_WITHIN_MS = 180_000;
const STEADY_MS = 60_000;
/** Longer than any call that is under way. */
const LONGEST_CLOSE_MS = 60_000;

/** Ends all faults, waits until all work is done, and checks the invariants of a system at rest. */
export async function quiesceMarket(world: MarketWorld): Promise<void> {
  const { scheduler } = world;
  endFaults(world);
  const end = scheduler.now + LONGEST_MS;
  let quietSince = scheduler.now;
  let problem = await findViolation(() => checkRest(world));
  while (scheduler.now < end && (problem !== undefined || scheduler.now - quietSince < STEADY_MS)) {
    await scheduler.runUntil(scheduler.now + STEP_MS);
    await cleanUpAllLost(world);
    world.assertSound();
    problem = await findViolation(() => checkRest(world));
    // Work may begin again by itself, as when the balance of a team runs out.
    if (problem !== undefined) quietSince = scheduler.now;
  }
  if (problem !== undefined) throw problem;
  machinesArePolled(world);
  await booksAreExact(world);
  await ledgerVerifies(world);
}

/** Closes the servers, and checks that no timer is left. */
export async function shutDownMarket(world: MarketWorld): Promise<void> {
  world.isOver = true;
  const { scheduler, replicas } = world;
  const closing = replicas.map(({ serving }) => serving?.marketplace.close());
  await scheduler.runUntil(scheduler.now + LONGEST_CLOSE_MS);
  await Promise.all(closing);
  for (const { process } of replicas) nothingIsLeft({ timers: process?.openTimers ?? 0, subscriptions: 0 });
}

function endFaults(world: MarketWorld): void {
  world.journal.note('world', 'comes to rest');
  world.isCalm = true;
  for (const { plain } of world.providers)
    for (const configuration of plain.configurations) configuration.available = true;
  for (const replica of world.replicas) {
    replica.clockOffsetMs = 0;
    replica.process?.resume();
  }
  world.scheduler.after(KNOWN_AGAIN_WITHIN_MS, () =>
    acceptAllLosses(world).catch((error: unknown) => world.fail(error)),
  );
}

async function checkRest(world: MarketWorld): Promise<void> {
  for (const { name, serving } of world.replicas)
    hold('I24', serving !== undefined, () => `${name} does not serve again`);
  machinesAreSingle(world);
  deploymentsRest(world);
  await volumesRest(world);
  await keysAreGone(world);
  await mailsAreSent(world);
  await billsAreFresh(world);
  await billsAgree(world);
  await slicesAreRolledUp(world);
}
