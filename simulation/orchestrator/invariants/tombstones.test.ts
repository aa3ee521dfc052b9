import { expect, it } from 'vitest';
import {
  oldTombstonesArePruned,
  onlyATombstoneIsWrittenAgain,
  onlyTombstonesArePruned,
  theEndedRead404,
} from './tombstones.ts';

it('I31: what lives is pruned, or what has just ended', () => {
  expect(() => onlyTombstonesArePruned('a', undefined, 100, 10)).toThrow('lives');
  expect(() => onlyTombstonesArePruned('a', 91, 100, 10)).toThrow('9 ms after its end');
  onlyTombstonesArePruned('a', 90, 100, 10);
});

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
