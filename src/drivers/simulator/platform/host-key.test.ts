import ssh2 from 'ssh2';
import { expect, it } from 'vitest';
import { generateHostKey } from './host-key.ts';

it('makes only keys that a server can load', () => {
  // One in 256 was malformed: the chance to miss that in so many is below one in 10,000.
  const keys = Array.from({ length: 2500 }, generateHostKey);
  expect(keys.filter((key) => ssh2.utils.parseKey(key.privateKey) instanceof Error)).toEqual([]);
});
