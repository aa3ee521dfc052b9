import { expect, it } from 'vitest';
import { completeId } from './complete-id.ts';

const ids = ['key-1a2b3c', 'key-1a2b4d', 'key-9f9f9f', 'key-9f9f'];

it.each([
  ['key-1a2b3', 'key-1a2b3c'],
  ['key-9f9f', 'key-9f9f'],
  ['key-9f9', 'key-9f9'],
  ['key-0000', 'key-0000'],
  ['key-', 'key-'],
])('completes %s to %s', (given, id) => {
  expect(completeId(ids, given)).toBe(id);
});

it('refuses the beginning of several ids, and names them', () => {
  expect(() => completeId(ids, 'key-1a2b')).toThrow(
    '2 ids begin with key-1a2b: key-1a2b3c, key-1a2b4d. Give more of it.',
  );
});
