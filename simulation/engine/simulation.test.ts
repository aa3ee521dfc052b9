import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Prepared, prepareOrchestrator } from '../orchestrator/accounts.ts';
import { describeFailure } from '../runner/report.ts';
import { engines } from '../runner/subject.ts';
import { runEngine } from './run.ts';

const SEED = '1';
const COMMANDS = 12;

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => prepared.template.close());

it.each(engines)(
  `keeps every invariant with the %s driver over seed ${SEED}, and repeats it exactly (I27)`,
  { timeout: 120_000 },
  async (engine) => {
    const run = () => runEngine(prepared, SEED, COMMANDS, engine);
    const once = await run();
    expect(once.failure && describeFailure(once, { subject: engine })).toBeUndefined();
    // Its driver runs over the cluster of incus, which repeats its run.
    if (engine === 'exec') return;
    const again = await run();
    expect(again.hash).toBe(once.hash);
    expect(again.events).toBe(once.events);
  },
);
