import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { judge } from '../verdict/judge.ts';
import { runAgainst } from './harness.ts';

it('finds no failure in a lawful run that was cut short, wherever that was (every third record)', async () => {
  const { rows } = loadRequirements();
  const { records } = await runAgainst({ options: { attach: 'cold', detachMs: 12_000 } }, rows);
  const failures: string[] = [];
  for (let length = 1; length < records.length; length += 3)
    for (const { requirement, verdict } of judge(records.slice(0, length), rows, CHECKS))
      if (verdict === 'fail' || verdict === 'warn')
        failures.push(`${requirement.id} after ${length} records`);
  expect(failures).toEqual([]);
});
