import { expect, it } from 'vitest';
import { isPrivateAddress, isPrivateBaseUrl } from './private-addresses.ts';

it.each([
  '127.0.0.1',
  '10.1.2.3',
  '172.31.0.1',
  '192.168.0.9',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '::1',
  '::',
  'fe80::1%eth0',
  'fd00::1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  '::ffff:0:127.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '::127.0.0.1',
  'ff02::1',
])('%s is private', (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

it.each(['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'])('%s is public', (address) => {
  expect(isPrivateAddress(address)).toBe(false);
});

it.each([
  ['http://127.0.0.1:8080/v1', true],
  ['http://[::1]:8080/v1', true],
  ['http://localhost:8080/v1', true],
  ['https://10.0.0.7/v1', true],
  ['https://orchestrator.example/v1', false],
  ['https://8.8.8.8/v1', false],
])('%s is of a private network: %s', (baseUrl, expected) => {
  expect(isPrivateBaseUrl(baseUrl)).toBe(expected);
});
