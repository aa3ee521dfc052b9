import { expect, it } from 'vitest';
import type { Entry } from '../resources/ledger.ts';
import { leftUsd, spentOn } from './spending.ts';

const DAY = Date.UTC(2026, 0, 10);
const HOUR_MS = 3_600_000;

const machine = (from: number, to: number | undefined, changed: Partial<Entry> = {}): Entry => ({
  n: 1,
  type: 'instance',
  name: 'm',
  step: 'create/post',
  state: to === undefined ? 'made' : 'gone',
  pricePerHour: 0.1,
  intendedAt: from,
  ...(to !== undefined && { goneAt: to }),
  ...changed,
});

it('a machine over midnight counts on both days, by its hours', () => {
  const entries = [machine(DAY - 2 * HOUR_MS, DAY + HOUR_MS)];
  expect(spentOn(DAY - 1, entries, DAY + 5 * HOUR_MS)).toBeCloseTo(0.2);
  expect(spentOn(DAY, entries, DAY + 5 * HOUR_MS)).toBeCloseTo(0.1);
  expect(spentOn(DAY + 24 * HOUR_MS, entries, DAY + 48 * HOUR_MS)).toBe(0);
});

it('a refused create costs nothing, one without a clear answer does', () => {
  const now = DAY + 4 * HOUR_MS;
  expect(spentOn(now, [machine(DAY, undefined, { state: 'refused' })], now)).toBe(0);
  expect(spentOn(now, [machine(DAY, undefined, { state: 'unknown' })], now)).toBeCloseTo(0.4);
});

it('what may still be running is set aside until the day ends, and for the day after', () => {
  const now = DAY + 4 * HOUR_MS;
  expect(leftUsd(5, [machine(DAY, undefined)], now)).toBeCloseTo(5 - 24 * 0.1);
  expect(leftUsd(1, [machine(DAY, undefined)], now)).toBe(0);
  expect(leftUsd(1, [machine(DAY, now)], now)).toBeCloseTo(0.6);
});
