import ssh2 from 'ssh2';
import { expect, it } from 'vitest';
import { generateHostKey } from './host-key.ts';

it('makes only keys that a server can load', () => {
  // If one key in 256 were malformed, the chance to miss it in this many keys would be below one in 10,000.
  const keys = Array.from({ length: 2500 }, generateHostKey);
  expect(keys.filter((key) => ssh2.utils.parseKey(key.privateKey) instanceof Error)).toEqual([]);
});
