import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Prepared, prepareOrchestrator } from '../orchestrator/accounts.ts';
import { describeFailure } from '../runner/report.ts';
import { runEngine } from './run.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => rmSync(prepared.folder, { recursive: true, force: true }));

it('repeats a run with a real driver exactly by its seed (I27)', { timeout: 120_000 }, async () => {
  const [once, again] = [await runEngine(prepared, 'again', 20), await runEngine(prepared, 'again', 20)];
  expect(again.hash).toBe(once.hash);
  expect(again.events).toBe(once.events);
  const other = await runEngine(prepared, 'other', 20);
  expect(other.hash).not.toBe(once.hash);
});

const SEEDS = 5;
const COMMANDS = 20;

it(`comes to a verdict over ${SEEDS} seeds with the libvirt driver`, { timeout: 300_000 }, async () => {
  const crashes: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runEngine(prepared, String(seed), COMMANDS);
    if (outcome.failure?.invariant === 'crash')
      crashes.push(describeFailure(outcome, { subject: 'libvirt' }));
  }
  expect(crashes).toEqual([]);
});
