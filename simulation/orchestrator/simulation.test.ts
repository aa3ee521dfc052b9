import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeFailure } from '../runner/report.ts';
import { type Prepared, prepareOrchestrator } from './accounts.ts';
import { runOrchestrator } from './run.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => prepared.template.close());

it('repeats a run exactly by its seed (I27)', async () => {
  const [once, again] = [
    await runOrchestrator(prepared, 'again', 20),
    await runOrchestrator(prepared, 'again', 20),
  ];
  expect(again.hash).toBe(once.hash);
  expect(again.events).toBe(once.events);
  const other = await runOrchestrator(prepared, 'other', 20);
  expect(other.hash).not.toBe(once.hash);
});

const SEEDS = 3;
const COMMANDS = 8;
/** On two platforms, and on several hosts. */
const SEEDS_OF_TWO = 1;

it(`keeps every invariant over ${SEEDS} seeds [orchestrator-seeds]`, { timeout: 300_000 }, async () => {
  const failures: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runOrchestrator(prepared, String(seed), COMMANDS);
    if (outcome.failure !== undefined) failures.push(describeFailure(outcome));
  }
  expect(failures).toEqual([]);
});

it(`and on two platforms over ${SEEDS_OF_TWO} seed [two-platforms-seeds]`, { timeout: 300_000 }, async () => {
  const failures: string[] = [];
  for (let seed = 1; seed <= SEEDS_OF_TWO; seed++) {
    const outcome = await runOrchestrator(prepared, String(seed), 3 * COMMANDS, 'platforms');
    if (outcome.failure !== undefined) failures.push(describeFailure(outcome, { subject: 'platforms' }));
  }
  expect(failures).toEqual([]);
});

it(`and on a platform of several hosts over ${SEEDS_OF_TWO} seed [hosts-seeds]`, {
  timeout: 300_000,
}, async () => {
  const failures: string[] = [];
  for (let seed = 1; seed <= SEEDS_OF_TWO; seed++) {
    const outcome = await runOrchestrator(prepared, String(seed), 3 * COMMANDS, 'hosts');
    if (outcome.failure !== undefined) failures.push(describeFailure(outcome, { subject: 'hosts' }));
  }
  expect(failures).toEqual([]);
});
