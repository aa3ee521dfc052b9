import { expect, it } from 'vitest';
import { clientOf } from './client-address.ts';

it.each([
  ['203.0.113.7', undefined, 0, '203.0.113.7'],
  ['203.0.113.7', '198.51.100.1', 0, '203.0.113.7'],
  ['10.0.0.1', '198.51.100.1', 1, '198.51.100.1'],
  ['10.0.0.1', '1.2.3.4, 198.51.100.1', 1, '198.51.100.1'],
  ['10.0.0.1', '1.2.3.4,198.51.100.1 , 10.0.0.2', 2, '198.51.100.1'],
  ['10.0.0.1', '198.51.100.1', 2, '198.51.100.1'],
  ['10.0.0.1', undefined, 2, '10.0.0.1'],
  ['10.0.0.1', 'someone', 1, '10.0.0.1'],
  ['10.0.0.1', '', 1, '10.0.0.1'],
  ['10.0.0.1', '198.51.100.1:4711', 1, '198.51.100.1'],
  ['10.0.0.1', '[2001:db8:1:2:3::4]:4711', 1, '2001:db8:1:2::/64'],
  ['::ffff:203.0.113.7', undefined, 0, '203.0.113.7'],
  ['::ffff:cb00:7107', undefined, 0, '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', undefined, 0, '2001:db8:1:2::/64'],
  ['2001:db8:1:2:ffff::1', undefined, 0, '2001:db8:1:2::/64'],
  ['fe80::1%eth0', undefined, 0, 'fe80:0:0:0::/64'],
  ['::1', undefined, 0, '0:0:0:0::/64'],
  [undefined, undefined, 0, 'unknown'],
])(
  'counts a request from %s that was forwarded for %s, with %s proxies to trust, for %s',
  (socket, forwarded, proxies, counted) => {
    expect(clientOf(socket, forwarded, proxies).network).toBe(counted);
  },
);

it.each([
  ['10.0.0.1', '[2001:DB8:1:2:3::4]:4711', 1, '2001:db8:1:2:3::4'],
  ['fe80::1%eth0', undefined, 0, 'fe80::1'],
  ['::ffff:203.0.113.7', undefined, 0, '203.0.113.7'],
  ['203.0.113.7', '198.51.100.1', 0, '203.0.113.7'],
])(
  'names a client at %s, forwarded for %s, with %s proxies to trust, %s',
  (socket, forwarded, proxies, named) => {
    expect(clientOf(socket, forwarded, proxies).address).toBe(named);
  },
);
