import { expect, it } from 'vitest';
import { withOverrides } from './with-overrides.ts';

class Counter {
  #count = 0;
  step = 1;

  get count(): number {
    return this.#count;
  }

  add(times: number): void {
    this.#count += times * this.step;
  }
}

it('replaces the given members, and does not change the target', () => {
  const counter = new Counter();
  const doubled = withOverrides(counter, { add: (times) => counter.add(2 * times) });
  doubled.add(1);
  expect(doubled.count).toBe(2);
  counter.add(1);
  expect(doubled.count).toBe(3);
});

it('binds methods and getters to their instance, and reads changing values again', () => {
  const counter = new Counter();
  const wrapped = withOverrides(withOverrides(counter, {}), {});
  const { add } = wrapped;
  counter.step = 5;
  add(1);
  expect([wrapped.count, wrapped.step]).toEqual([5, 5]);
  expect(wrapped).toBeInstanceOf(Counter);
});

it('can be spread together with its replacements', () => {
  const target = { a: 1, b: 2 };
  expect({ ...withOverrides(target, { b: 3 }) }).toEqual({ a: 1, b: 3 });
});
