import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeFailure } from '../runner/report.ts';
import { type MarketPrepared, prepareMarket } from './accounts.ts';
import { runMarket } from './run.ts';

let prepared: MarketPrepared;
beforeAll(async () => {
  prepared = await prepareMarket();
});
afterAll(() => prepared.template.close());

it('repeats a run of the marketplace exactly by its seed (I27)', async () => {
  const once = await runMarket(prepared, 'again', 10);
  const other = await runMarket(prepared, 'other', 10);
  const again = await runMarket(prepared, 'again', 10);
  expect(again.hash).toBe(once.hash);
  expect(again.events).toBe(once.events);
  expect(other.hash).not.toBe(once.hash);
});

const SEEDS = 2;
const COMMANDS = 10;

it(`keeps every invariant of the marketplace over ${SEEDS} seeds [marketplace-seeds]`, {
  timeout: 300_000,
}, async () => {
  const failures: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runMarket(prepared, String(seed), COMMANDS);
    if (outcome.failure !== undefined) failures.push(describeFailure(outcome, { subject: 'marketplace' }));
  }
  expect(failures).toEqual([]);
});
