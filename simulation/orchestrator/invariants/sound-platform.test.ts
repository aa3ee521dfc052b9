import { expect, it } from 'vitest';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { isSoldThere, nothingEndsThere, nothingStandsStill } from './sound-platform.ts';

const MINUTE_MS = 60_000;

it('I32: an instance on the sound platform that ends as lost or failed', () => {
  const ended = instance('a', { status: 'ERROR', error: 'gone' });
  expect(() => nothingEndsThere({ ...ended, platform: 'east' })).toThrow('I32');
  expect(() => nothingEndsThere(ended)).not.toThrow();
  expect(() => nothingEndsThere(instance('a', { platform: 'east', status: 'DESTROYED' }))).not.toThrow();
});

it('I32: one that stands still', () => {
  const begun = { id: 'a', platform: 'east', status: 'PROVISIONING' } as const;
  expect(() => nothingStandsStill(begun, 0, 3 * MINUTE_MS)).toThrow('I32');
  expect(() => nothingStandsStill(begun, 0, MINUTE_MS)).not.toThrow();
  expect(() => nothingStandsStill({ ...begun, platform: 'default' }, 0, 9 * MINUTE_MS)).not.toThrow();
  expect(() => nothingStandsStill({ ...begun, status: 'STOPPED' }, 0, 9 * MINUTE_MS)).not.toThrow();
});

it('I32: a free unit of it that is not offered', () => {
  expect(() => isSoldThere('eu-north', 1, ['eu-south'])).toThrow('I32');
  expect(() => isSoldThere('eu-north', 0, [])).not.toThrow();
  expect(() => isSoldThere('eu-north', 1, ['eu-north'])).not.toThrow();
});
