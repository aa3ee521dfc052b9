import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { DAY_MS } from '../../ports/clock.ts';
import { createCertificates } from './certificates.ts';

const NOW = Date.UTC(2026, 10, 27, 12);

it('makes a CA, and certificates of it: for the names, for another name, and expired', () => {
  const {
    ca: pem,
    valid,
    expired,
    'wrong-name': other,
  } = createCertificates(['localhost', '127.0.0.1', '2001:db8::1'], NOW);
  const ca = new X509Certificate(pem);
  const [ofNames, old, ofAnother] = [valid, expired, other].map(({ cert }) => new X509Certificate(cert));
  expect(ca.ca).toBe(true);
  for (const one of [ofNames, old, ofAnother]) {
    expect(one?.ca).toBe(false);
    expect(one?.checkIssued(ca)).toBe(true);
    expect(one?.verify(ca.publicKey)).toBe(true);
  }
  expect(ofNames?.checkHost('localhost')).toBe('localhost');
  expect(ofNames?.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(ofNames?.checkIP('2001:db8::1')).toBe('2001:db8::1');
  expect([ofAnother?.checkHost('localhost'), ofAnother?.checkIP('127.0.0.1')]).toEqual([
    undefined,
    undefined,
  ]);
  expect([ca, ofNames, ofAnother].map((one) => Number(one?.validToDate) - NOW)).toEqual(
    [365, 365, 365].map((days) => days * DAY_MS),
  );
  expect(Number(old?.validToDate) - NOW).toBe(-DAY_MS);
});
