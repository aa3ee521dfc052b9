import { expect, it } from 'vitest';
import type { Exchange } from '../transcript/records.ts';
import { ListSamples } from './list-samples.ts';

const listed = (sentAt: number, endedAt: number, failure?: Exchange['failure']): Exchange => ({
  kind: 'exchange',
  n: 1,
  step: 'sample/list',
  sentAt,
  endedAt,
  wall: '2026-01-01T12:00:00Z',
  requestId: 'r',
  credential: 'api key',
  request: { method: 'GET', path: '/instances', headers: {} },
  ...(failure !== undefined && { failure }),
});

it('a list is due after a drawn time of 5 to 15 s', () => {
  const samples = new ListSamples(() => 0.5);
  expect([0, 9999, 10_000].map((now) => samples.isDue(now))).toEqual([false, false, true]);
  samples.taken(listed(10_000, 10_100));
  expect([20_099, 20_100].map((now) => samples.isDue(now))).toEqual([false, true]);
});

it('a list that takes 4 s is read every 40 s at most', () => {
  const samples = new ListSamples(() => 0);
  samples.taken(listed(0, 4000));
  expect([43_999, 44_000].map((now) => samples.isDue(now))).toEqual([false, true]);
});

it('a list that is longer than the suite reads is not read again', () => {
  const samples = new ListSamples(() => 0);
  samples.taken(listed(0, 100, { kind: 'too_large', message: 'More than 64 MiB were answered.' }));
  expect(samples.isDue(Number.MAX_SAFE_INTEGER)).toBe(false);
});
