import { expect, it } from 'vitest';
import { oldTombstonesArePruned, onlyATombstoneIsWrittenAgain, theEndedRead404 } from './tombstones.ts';

it('I31: what was pruned lives again', () => {
  expect(() => onlyATombstoneIsWrittenAgain('a', false)).toThrow('I31');
  onlyATombstoneIsWrittenAgain('a', true);
});

it('I31: a tombstone that is never pruned', () => {
  expect(() => oldTombstonesArePruned('a', false)).toThrow('I31');
  oldTombstonesArePruned('a', true);
});

it.each([200, 503])('I31: what has ended reads %i', (status) => {
  expect(() => theEndedRead404({ path: '/v1/instances/a', status })).toThrow('I31');
  theEndedRead404({ path: '/v1/instances/a', status: 404 });
});
