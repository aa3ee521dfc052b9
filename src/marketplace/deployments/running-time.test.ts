import { expect, it } from 'vitest';
import { runningMs, stoppedMs } from './to-deployment.ts';

const times = { startedAt: 1_000, stoppedAt: null, pausedAt: null, pausedMs: 0 };

it.each([
  ['nothing before it started', { ...times, startedAt: null }, 0, 0],
  ['all the time since it started', times, 9_000, 0],
  ['not the stops that are over', { ...times, pausedMs: 2_000 }, 7_000, 2_000],
  ['not the stop that goes on', { ...times, pausedMs: 2_000, pausedAt: 6_000 }, 3_000, 6_000],
  ['nothing after it ended', { ...times, stoppedAt: 4_000 }, 3_000, 0],
  [
    'nothing of a stop that lasted until the end',
    { ...times, pausedAt: 3_000, stoppedAt: 4_000 },
    2_000,
    1_000,
  ],
  ['nothing where the clock is behind', { ...times, startedAt: 11_000 }, 0, 0],
])('counts %s [running-time]', (_, record, running, stopped) => {
  expect([runningMs(record, 10_000), stoppedMs(record, 10_000)]).toEqual([running, stopped]);
});
