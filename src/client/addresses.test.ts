import { expect, it } from 'vitest';
import { isForbiddenAddress } from './addresses.ts';

it.each([
  ...[
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '::1',
    '::',
    'fe80::1%eth0',
    'fd00::1',
    '2002:7f00:1::',
  ],
  ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:127.0.0.1'],
  // Translated (SIIT and NAT64).
  ...['::ffff:0:127.0.0.1', '::ffff:0:7f00:1', '0:0:0:0:ffff:0:a9fe:a9fe', '::FFFF:0:10.0.0.1'],
  ...['64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '64:ff9b::', '64:ff9b:1::8.8.8.8'],
  // IPv4-compatible.
  ...['::127.0.0.1', '::7f00:1', '::10.0.0.1', '::a00:1'],
  'no address',
])('%s is forbidden', (address) => {
  expect(isForbiddenAddress(address)).toBe(true);
});

it.each([
  ...['8.8.8.8', '2600::1', '::ffff:8.8.8.8', '::ffff:0:8.8.8.8', '::ffff:0:808:808'],
  ...['64:ff9b::8.8.8.8', '64:ff9b::808:808', '::8.8.8.8'],
])('%s is not', (address) => {
  expect(isForbiddenAddress(address)).toBe(false);
});
