import { expect, it } from 'vitest';
import { judge } from './judge.ts';
import { type Figure, FLAT, LINEAR } from './measure.ts';

const NOISE = [1.31, 1, 1.2];
const rounds = (cost: (n: number) => number, n: number): number[] => NOISE.map((noise) => noise * cost(n));
const of = (figure: Partial<Figure>, cost: (n: number) => number, n = 1_000) =>
  judge({ what: 'a cost', unit: 'ms', mayGrow: null, ...figure }, rounds(cost, n), rounds(cost, 10 * n));

it.each<[string, number, (n: number) => number, boolean]>([
  ['a cost of each that stays', FLAT, () => 3, false],
  ['a cost of each that grows with how many there are', FLAT, (n) => n, true],
  ['a cost of each that grows with a small part of how many there are', FLAT, (n) => 1 + n / 5_000, true],
  ['a cost of each that grows as a tree does', FLAT, (n) => Math.log2(n), false],
  ['a cost of all that grows with how many there are', LINEAR, (n) => 5 + n, false],
  ['a cost of all that grows with their square', LINEAR, (n) => n * n, true],
  ['a cost that cannot be told', FLAT, () => Number.NaN, true],
])('judges %s', (_name, mayGrow, cost, isTooMuch) => {
  expect(of({ mayGrow }, cost).isTooMuch).toBe(isTooMuch);
});

it('takes the least of the rounds, which noise only raises, or what the figure says', () => {
  expect(of({}, () => 2)).toMatchObject({ value: 2, valueAtTen: 2, growth: 1 });
  expect(of({ of: 'median' }, () => 2).value).toBeCloseTo(2.4);
  expect(of({ of: 'most' }, () => 2).value).toBeCloseTo(2.62);
});

it('takes a rate that falls for a cost that grows', () => {
  const rate: Partial<Figure> = { of: 'most', aim: { atLeast: 100 }, mayGrow: FLAT };
  expect(of(rate, (n) => 1e6 / n)).toMatchObject({ isTooMuch: true, isAimMet: true });
  expect(of(rate, () => 90)).toMatchObject({ isTooMuch: false, isAimMet: true });
  expect(of(rate, () => 50)).toMatchObject({ isTooMuch: false, isAimMet: false });
});

it('tells a missed aim, and fails nothing for it', () => {
  expect(of({ aim: { atMost: 1 }, mayGrow: FLAT }, () => 3)).toMatchObject({
    isAimMet: false,
    isTooMuch: false,
  });
  expect(of({}, () => 3).isAimMet).toBeNull();
});
