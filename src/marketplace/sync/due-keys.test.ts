import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DueKeys } from './due-keys.ts';

const put = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), at: fc.nat(9) });

it('gives keys in the order of their times, as a sorted list does', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(put, fc.constant('take' as const)), { maxLength: 60 }), (steps) => {
      const keys = new DueKeys();
      let list: { key: string; at: number }[] = [];
      for (const step of steps) {
        if (step === 'take') {
          expect(keys.nextAt()).toBe(list[0]?.at ?? null);
          expect(keys.take()).toBe(list.shift()?.key);
          continue;
        }
        keys.put(step.key, step.at);
        const known = list.find(({ key }) => key === step.key);
        if (known !== undefined && known.at <= step.at) continue;
        // Keys with equal times keep their order of insertion: the sort is stable.
        list = [...list.filter(({ key }) => key !== step.key), step].sort((a, b) => a.at - b.at);
        expect(keys.has(step.key)).toBe(true);
      }
    }),
  );
});

it('postpones only existing keys', () => {
  const keys = new DueKeys();
  keys.put('a', 1);
  keys.put('b', 2);
  keys.postpone('a', 5);
  keys.postpone('c', 5);
  expect([keys.take(), keys.nextAt(), keys.take(), keys.nextAt()]).toEqual(['b', 6, 'a', null]);
});

it('is empty after it is cleared', () => {
  const keys = new DueKeys();
  keys.put('a', 1);
  keys.clear();
  expect([keys.has('a'), keys.nextAt(), keys.take()]).toEqual([false, null, undefined]);
});
