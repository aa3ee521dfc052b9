import { expect, it } from 'vitest';
import { isLoopback } from './loopback.ts';

it.each([
  ['http://127.0.0.1/', true],
  ['http://0x7f.1/', true],
  ['http://[::1]/', true],
  ['http://[::ffff:127.0.0.1]/', true],
  ['http://localhost./', true],
  ['http://berth.localhost/', true],
  ['http://127.evil.example/', false],
  ['http://127.0.0.1.evil.example/', false],
  ['http://localhost.evil.example/', false],
  ['http://notlocalhost/', false],
  ['http://[::ffff:10.0.0.1]/', false],
])('%s: %s', (url, expected) => {
  expect(isLoopback(new URL(url).hostname)).toBe(expected);
});
