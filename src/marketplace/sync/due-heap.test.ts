import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DueHeap } from './due-heap.ts';

const put = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), at: fc.nat(9) });

it('gives keys in the order of their times, as a sorted list does', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(put, fc.constant('take' as const)), { maxLength: 60 }), (steps) => {
      const heap = new DueHeap();
      let list: { key: string; at: number }[] = [];
      for (const step of steps) {
        if (step === 'take') {
          expect(heap.nextAt()).toBe(list[0]?.at ?? null);
          expect(heap.take()).toBe(list.shift()?.key);
          continue;
        }
        heap.put(step.key, step.at);
        const known = list.find(({ key }) => key === step.key);
        if (known !== undefined && known.at <= step.at) continue;
        // Keys with equal times keep their order of insertion: the sort is stable.
        list = [...list.filter(({ key }) => key !== step.key), step].sort((a, b) => a.at - b.at);
        expect(heap.has(step.key)).toBe(true);
      }
    }),
  );
});

it('postpones only existing keys', () => {
  const heap = new DueHeap();
  heap.put('a', 1);
  heap.put('b', 2);
  heap.postpone('a', 5);
  heap.postpone('c', 5);
  expect([heap.take(), heap.nextAt(), heap.take(), heap.nextAt()]).toEqual(['b', 6, 'a', null]);
});

it('is empty after it is cleared', () => {
  const heap = new DueHeap();
  heap.put('a', 1);
  heap.clear();
  expect([heap.has('a'), heap.nextAt(), heap.take()]).toEqual([false, null, undefined]);
});
