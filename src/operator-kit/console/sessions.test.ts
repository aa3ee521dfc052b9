import { expect, it } from 'vitest';
import { steadyRandom } from '../../../test/support/doubles/random.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { MAX_SESSIONS_PER_KEY, Sessions } from './sessions.ts';

it('of one key are limited: a new one ends its oldest, and none of another key', () => {
  const sessions = new Sessions({ clock: new VirtualClock(), random: steadyRandom() });
  const other = sessions.begin({ id: 'key-1', name: 'ann' });
  const own = Array.from({ length: MAX_SESSIONS_PER_KEY + 1 }, () =>
    sessions.begin({ id: 'key-2', name: 'mara' }),
  );
  const isOpen = (secret: string) => sessions.find(secret) !== undefined;
  expect(isOpen(other)).toBe(true);
  expect(own.map(isOpen)).toEqual(own.map((_secret, index) => index > 0));
});
