import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Prepared, prepareOrchestrator } from '../orchestrator/accounts.ts';
import { describeFailure } from '../runner/report.ts';
import { engines } from '../runner/subject.ts';
import { runEngine } from './run.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => rmSync(prepared.folder, { recursive: true, force: true }));

it.each(engines)(
  'repeats a run with the %s driver exactly by its seed (I27)',
  { timeout: 120_000 },
  async (engine) => {
    const run = (seed: string) => runEngine(prepared, seed, 20, { engine });
    const [once, again] = [await run('again'), await run('again')];
    expect(again.hash).toBe(once.hash);
    expect(again.events).toBe(once.events);
    expect((await run('other')).hash).not.toBe(once.hash);
  },
);

const SEEDS = 2;
const COMMANDS = 20;

it.each(engines)(
  `comes to a verdict over ${SEEDS} seeds with the %s driver`,
  { timeout: 300_000 },
  async (engine) => {
    const crashes: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const outcome = await runEngine(prepared, String(seed), COMMANDS, { engine });
      if (outcome.failure?.invariant === 'crash') crashes.push(describeFailure(outcome, { subject: engine }));
    }
    expect(crashes).toEqual([]);
  },
);
