import { expect, it } from 'vitest';
import { createSeededRandom } from './seeded-random.ts';

const draw = (seed: string): number[] => {
  const random = createSeededRandom(seed);
  return Array.from({ length: 1000 }, () => random.next());
};

it('repeats itself for the same seed, and differs for another', () => {
  expect(draw('a')).toEqual(draw('a'));
  expect(draw('a')).not.toEqual(draw('b'));
});

it('draws uniformly from [0, 1)', () => {
  const numbers = draw('a');
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
  expect(numbers.reduce((sum, value) => sum + value, 0) / numbers.length).toBeCloseTo(0.5, 1);
});

it('makes as many bytes as asked', () => {
  expect(createSeededRandom('a').bytes(16)).toHaveLength(16);
});
