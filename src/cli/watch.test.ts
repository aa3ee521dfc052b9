import { expect, it, vi } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { ChangedRows, repeat, untilInterrupted, WATCH_EVERY_MS } from './watch.ts';

it('repeats a round every two seconds, until it is interrupted', async () => {
  const clock = new VirtualClock();
  const round = vi.fn(async () => undefined);
  const ended = untilInterrupted((end) => repeat(clock, end, round));
  await clock.advance(2 * WATCH_EVERY_MS);
  expect(round).toHaveBeenCalledTimes(3);
  process.emit('SIGINT');
  await ended;
  await clock.advance(WATCH_EVERY_MS);
  expect(round).toHaveBeenCalledTimes(3);
});

it('ends when the reader closes the output, also during a round', async () => {
  const clock = new VirtualClock();
  const round = vi.fn(async () => void process.stdout.emit('error', new Error('EPIPE')));
  process.stdout.once('error', () => undefined);
  await untilInterrupted((end) => repeat(clock, end, round));
  expect(round).toHaveBeenCalledTimes(1);
});

it('fails as a round fails, and leaves no listener', async () => {
  const before = process.listenerCount('SIGINT');
  await expect(
    untilInterrupted((end) => repeat(new VirtualClock(), end, () => Promise.reject(new Error('gone')))),
  ).rejects.toThrow('gone');
  expect(process.listenerCount('SIGINT')).toBe(before);
});

it('names the rows that are new or different since the last time', () => {
  const changed = new ChangedRows();
  expect(changed.of([{ id: 1 }, { id: 2, status: 'a' }])).toHaveLength(2);
  expect(changed.of([{ id: 1 }, { id: 2, status: 'b' }, { id: 3 }])).toEqual([
    { id: 2, status: 'b' },
    { id: 3 },
  ]);
  expect(changed.of([])).toEqual([]);
  expect(changed.of([{ id: 1 }])).toEqual([{ id: 1 }]);
});
