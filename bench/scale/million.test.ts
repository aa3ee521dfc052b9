import { expect, it } from 'vitest';
import { needsOfAMillion, toBars } from './million.ts';
import type { Row } from './run.ts';

const row = (id: string, name: string, valueAtTen: number): Row => ({
  ...{ id, name, valueAtTen, store: 'postgres', n: 10_000, of: 'deployments', what: id },
  ...{ figure: { what: name, unit: '', mayGrow: null }, value: 0, growth: 1 },
  ...{ isTooMuch: false, isAimMet: null },
});
const rows = [
  row('idle-sync', 'corePercentOf1000', 0.5),
  row('idle-sync', 'writesPerS', 20),
  row('idle-sync', 'kibADay', 1_024),
  row('roll-up', 'cpuMs', 0.864),
  row('polls', 'pollUs', 1),
];

it('takes the cost of one among the most that were measured a million times', () => {
  const [polls, rollUp] = needsOfAMillion(rows);
  expect(polls).toMatchObject({ store: 'postgres', n: 100_000, cores: 5, writesPerS: 200 });
  expect(polls?.gibADay).toBeCloseTo(976.6, 1);
  expect(rollUp?.cores).toBeCloseTo(0.01);
  expect(needsOfAMillion(rows)).toHaveLength(2);
});

it('draws the cores of each in proportion', () => {
  const [polls, rollUp] = toBars(needsOfAMillion(rows));
  expect(polls).toMatch(/^poll each every 10 to 30 s {2}█{40} 5$/);
  expect(rollUp).toMatch(/^roll each day of each up {4}█ 0.01$/);
});
