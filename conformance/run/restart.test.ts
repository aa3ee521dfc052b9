import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { runAgainst, type Subject } from '../mutants/harness.ts';

const { rows } = loadRequirements();
const IDS = ['RESTART-INS-001', 'RESTART-SAME-001', 'RESTART-OFFER-001', 'RESTART-VOL-001'];

async function rulings(restarts: Subject['restarts'] & {}) {
  const needs = [{ level: 'full', scenarios: ['restart'] }] as const;
  const { judged, records } = await runAgainst({ restarts }, rows, needs);
  return {
    records,
    rulings: judged.flatMap(({ requirement, ruling }) => (IDS.includes(requirement.id) ? [ruling] : [])),
  };
}

it('without a command a restart is not applicable', async () => {
  const { rulings: found } = await rulings('never');
  expect(found).toHaveLength(IDS.length);
  for (const ruling of found)
    expect(ruling).toMatchObject({
      verdict: 'not_applicable',
      capability: 'a restart of the target (--restart-command)',
    });
});

it('a command that fails leaves the restart untested, with its exit code and its last line', async () => {
  const { rulings: found, records } = await rulings(async () => ({
    exitCode: 3,
    output: 'stopping\nunit not found',
  }));
  for (const ruling of found)
    expect(ruling).toMatchObject({
      verdict: 'not_tested',
      reason: 'the command of --restart-command ended with exit code 3: unit not found',
    });
  expect(records.find(({ kind }) => kind === 'restart')).toMatchObject({ exitCode: 3 });
});
