import { expect, it } from 'vitest';
import { CHECKS } from './checks/index.ts';
import { loadRequirements } from './contract/requirements.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { includes } from './transcript/records.ts';

const { rows } = loadRequirements();

it('ids are unique', () => {
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
});

it('ids are never changed: a new one is added here, an old one stays for ever', () => {
  expect(rows.map(({ id, level, tier }) => `${id} ${level} ${tier}`).toSorted()).toMatchSnapshot();
});

it('every check proves a requirement of its name, and every proof is a check', () => {
  const checks = CHECKS.map(({ id }) => id);
  expect(new Set(checks).size).toBe(checks.length);
  const own = rows.filter(({ id, checks: proofs }) => proofs?.includes(id)).map(({ id }) => id);
  expect(own.toSorted()).toEqual(checks.toSorted());
  expect(rows.flatMap(({ checks: proofs }) => proofs ?? []).filter((id) => !checks.includes(id))).toEqual([]);
});

it('every check is seen in scenarios that its level runs', () => {
  const levels = new Map(SCENARIOS.map(({ id, level }) => [id, level]));
  for (const { id, level, scenarios } of CHECKS) {
    expect(scenarios.length, id).toBeGreaterThan(0);
    for (const scenario of scenarios) {
      const needed = levels.get(scenario);
      expect(needed, `${id}: ${scenario}`).toBeDefined();
      if (needed !== undefined) expect(includes(level, needed), `${id}: ${scenario}`).toBe(true);
    }
  }
});

it('every scenario comes after those that it builds on', () => {
  const order = SCENARIOS.map(({ id }) => id);
  for (const { id, after } of SCENARIOS)
    for (const earlier of after) {
      expect(order).toContain(earlier);
      expect(order.indexOf(earlier), `${id} after ${earlier}`).toBeLessThan(order.indexOf(id));
    }
});
