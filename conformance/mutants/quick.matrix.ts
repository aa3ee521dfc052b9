import { afterAll, describe, expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst, type Subject } from './harness.ts';
import { allMutants } from './mutants.ts';
import { variations } from './variations.ts';

/** The settings of an engineer who iterates. */
const QUICK = { pollIntervalMs: 200, observeMs: 0 };
/** How much longer than against a correct target a run may take, apart from the target's own times. */
const LONGEST_MS = 90_000;
const SHOWN = 10;

const { rows } = loadRequirements();
/** Machines that boot quickly: each second of a boot is five polls. */
const MACHINES = { bootMs: 10_000, startMs: 5_000 };
const runQuickly = (subject: Subject) =>
  runAgainst(
    { ...subject, options: { ...MACHINES, ...subject.options }, run: { ...subject.run, ...QUICK } },
    rows,
  );
const slowest: { id: string; ms: number }[] = [];
const usual = runQuickly({});

afterAll(() => {
  const lines = slowest
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, SHOWN)
    .map(({ id, ms }) => `  ${id}: ${(ms / 1000).toFixed(1)} s`);
  process.stdout.write(`The slowest verdicts, beyond the time of the target:\n${lines.join('\n')}\n`);
});

describe('polled five times a second', () => {
  it.each(allMutants.map((mutant) => [mutant.id, mutant] as const))(
    '%s is over in time',
    async (id, mutant) => {
      const trial = await runQuickly(mutant);
      const ms = trial.tookMs - (await usual).tookMs - (mutant.takesMs ?? 0);
      slowest.push({ id, ms });
      expect(ms).toBeLessThanOrEqual(LONGEST_MS);
      const found = reddened(trial);
      const { reddens, alsoReddensWhenQuick = [] } = mutant;
      expect([...reddens, ...alsoReddensWhenQuick]).toEqual(expect.arrayContaining(found));
      if (!mutant.isSeenAtPaceOnly) expect(found).not.toEqual([]);
      expect(trial.leaked, 'resources that were left and not reported').toEqual([]);
    },
  );

  it.each(variations.map((variation) => [variation.id, variation] as const))(
    '%s is no failure',
    async (_id, { behave, warns = [], ...subject }) => {
      const trial = await runQuickly({
        ...subject,
        ...(behave && { behave: (rules, _hit, clock) => behave(rules, clock) }),
      });
      expect(warns).toEqual(expect.arrayContaining(reddened(trial)));
      expect(trial.leaked, 'resources that were left and not reported').toEqual([]);
    },
  );
});
