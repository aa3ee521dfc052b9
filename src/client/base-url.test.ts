import { describe, expect, it } from 'vitest';
import { isForbiddenAddress } from './addresses.ts';
import { parseBaseUrl } from './base-url.ts';

describe('parseBaseUrl', () => {
  it('keeps the path with its version, without a slash at the end', () => {
    expect(parseBaseUrl('https://GPU.example/api/v1/', { allowPrivate: false })).toBe(
      'https://gpu.example/api/v1',
    );
  });

  it.each([
    ['gpu.example/v1', 'expected a URL'],
    ['file:///etc/passwd', 'expected an https URL'],
    ['http://gpu.example/v1', 'expected https'],
    ['https://user:word@gpu.example/v1', 'without a user or a password'],
    ['https://gpu.example/v1?key=1', 'without a query'],
    ['https://gpu.example/v1#x', 'without a query and a fragment'],
    ['https://127.0.0.1/v1', '127.0.0.1 is private'],
    ['https://2130706433/v1', '127.0.0.1 is private'],
    ['https://0x7f.1/v1', '127.0.0.1 is private'],
    ['https://169.254.169.254/latest', '169.254.169.254 is private'],
    ['https://[::ffff:10.0.0.1]/v1', 'is private'],
    ['https://[fd00::1]/v1', 'fd00::1 is private'],
  ])('refuses %s', (text, problem) => {
    expect(() => parseBaseUrl(text, { allowPrivate: false })).toThrow(problem);
  });

  it('takes plain http and a loopback address where private addresses are allowed', () => {
    expect(parseBaseUrl('http://127.0.0.1:8080/v1', { allowPrivate: true })).toBe('http://127.0.0.1:8080/v1');
    expect(parseBaseUrl('http://[::1]:8080', { allowPrivate: true })).toBe('http://[::1]:8080');
  });
});

describe('isForbiddenAddress [forbidden-addresses]', () => {
  it.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.0.1', '192.168.1.1'],
    ...['198.18.0.1', '224.0.0.1', '255.255.255.255', '::', '::1', '::7f00:1', '::ffff:127.0.0.1'],
    ...['::ffff:a9fe:a9fe', '64:ff9b::a00:1', '2002:a00:1::', 'fc00::1', 'fe80::1%eth0', 'ff02::1'],
    ...['fd00:ec2::254', 'not an address'],
  ])('%s', (address) => {
    expect(isForbiddenAddress(address)).toBe(true);
  });

  it.each(['8.8.8.8', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'])(
    'but not %s',
    (address) => {
      expect(isForbiddenAddress(address)).toBe(false);
    },
  );
});
