import { expect, it } from 'vitest';
import { isLoopback } from './loopback.ts';

it.each([
  'http://127.0.0.1:9000/',
  'http://127.8.9.10/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f.0.0.1/',
  'http://0177.0.0.1/',
  'http://127.0.0.1./',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://localhost/',
  'http://LOCALHOST./',
])('%s is this machine', (url) => {
  expect(isLoopback(new URL(url).hostname)).toBe(true);
});

it.each([
  'http://127.evil.example/',
  'http://127.0.0.1.evil.example/',
  'http://127.0.0.1@evil.example/',
  'http://localhost.evil.example/',
  'http://evil.localhost.example/',
  'http://xlocalhost/',
  'http://[::2]/',
  'http://[::ffff:10.0.0.1]/',
  'http://[fe80::1]/',
  'http://0.0.0.0/',
  'http://10.0.0.1/',
  'http://2130706432000/',
])('%s is not', (url) => {
  expect(isLoopback(URL.parse(url)?.hostname ?? '')).toBe(false);
});

it.each([
  ['::1%lo', true],
  ['127.evil.example', false],
  ['::', false],
])('judges %s, as a flag has it', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
