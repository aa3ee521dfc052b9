import { expect, it } from 'vitest';
import type { Entry } from '../resources/ledger.ts';
import type { RunEvent } from './options.ts';
import { type Progress, progress } from './progress.ts';

const CLEAR = '\r\u001b[K';

/** A progress display with a clock that the test advances, and its output. */
function start({ isTerminal, columns = 100 }: { isTerminal: boolean; columns?: number }) {
  let ms = 0;
  let timer: { every: number; tick: () => void } | undefined;
  const written: string[] = [];
  const { onEvent, stop }: Progress = progress({
    write: (text) => written.push(text),
    isTerminal,
    columns,
    clock: { now: () => ms, wall: () => 1_000_000 + ms },
    every: (every, tick) => {
      timer = { every, tick };
      return () => {
        timer = undefined;
      };
    },
  });
  const pass = (seconds: number): void => {
    for (const end = ms + seconds * 1000; ms < end && timer !== undefined; timer?.tick()) ms += timer.every;
  };
  return {
    onEvent,
    stop,
    pass,
    written,
    hasTimer: () => timer !== undefined,
    lines: () => written.join('').split('\n'),
  };
}

function entry(changes: Partial<Entry> = {}): RunEvent {
  const made: Entry = {
    n: 1,
    type: 'instance',
    name: 'berth-conf-7k2p-001',
    step: 'create/primary',
    state: 'made',
    id: 'i-1',
    pricePerHour: 3.744,
    intendedAt: 1_000_000,
    ...changes,
  };
  return { event: 'resource', entry: made };
}

const scenario: RunEvent = { event: 'scenario', id: 'online', title: 'waits for ONLINE', index: 3, of: 14 };
const waiting: RunEvent = { event: 'waiting', text: 'the instance to come ONLINE' };

function record(step: string): RunEvent {
  return {
    event: 'record',
    record: {
      kind: 'exchange',
      n: 1,
      step,
      sentAt: 0,
      endedAt: 1,
      wall: '',
      requestId: '',
      credential: 'api key',
      request: { method: 'GET', path: '/instances/i-1', headers: {} },
    },
  };
}

it('keeps one line in a terminal: what runs, what is waited for, how long, and what it cost', () => {
  const { onEvent, pass, written } = start({ isTerminal: true });
  onEvent(scenario);
  onEvent(entry());
  onEvent(waiting);
  pass(125);
  expect(written.at(-1)).toBe(
    `${CLEAR}[3/14] waits for ONLINE · waiting for the instance to come ONLINE · 1 running · 2 min 05 s · $0.13`,
  );
  expect(written.join('')).not.toContain('\n');
});

it('rewrites the line at most five times a second, and only when it says something else', () => {
  const { onEvent, pass, written } = start({ isTerminal: true });
  onEvent(scenario);
  for (let count = 0; count < 100; count++) onEvent({ event: 'waiting', text: `${count}` });
  expect(written).toHaveLength(1);
  pass(0.2);
  expect(written).toHaveLength(2);
  pass(0.6);
  expect(written).toHaveLength(2);
  pass(10);
  expect(written.length).toBeLessThanOrEqual(12);
});

it('clears the line at the end, stops its timer, and writes no more', () => {
  const { onEvent, pass, written, hasTimer } = start({ isTerminal: true });
  onEvent(scenario);
  onEvent({ event: 'ended', reason: 'completed' });
  expect(written.at(-1)).toBe(CLEAR);
  expect(hasTimer()).toBe(false);
  const before = written.length;
  onEvent(scenario);
  pass(5);
  expect(written).toHaveLength(before);
});

it('clears the line when it is stopped without an end, once', () => {
  const { onEvent, stop, written, hasTimer } = start({ isTerminal: true });
  onEvent(scenario);
  stop();
  stop();
  expect(written.filter((text) => text === CLEAR)).toHaveLength(1);
  expect(hasTimer()).toBe(false);
});

it('fits the line into the terminal, and lets no escape of a stranger into it', () => {
  const { onEvent, written } = start({ isTerminal: true, columns: 40 });
  onEvent({ ...scenario, title: `\u001b[2J${'long '.repeat(50)}` });
  const line = written.at(-1)?.slice(CLEAR.length) ?? '';
  expect(line).toHaveLength(39);
  expect(line).toContain('\\x1b[2J');
});

it('no longer says that it waits when something else is asked', () => {
  const { onEvent, pass, written } = start({ isTerminal: true });
  onEvent(scenario);
  onEvent(waiting);
  onEvent(record('boot/poll'));
  onEvent(record('boot/poll'));
  pass(1);
  expect(written.at(-1)).toContain('waiting');
  onEvent(record('boot/read'));
  pass(1);
  expect(written.at(-1)).not.toContain('waiting');
});

it('writes a line where there is no terminal when a scenario begins, and when something is made or gone', () => {
  const { onEvent, pass, lines } = start({ isTerminal: false });
  onEvent({ event: 'begun', runId: '7k2p', scenarios: 14 });
  onEvent(scenario);
  onEvent(entry({ state: 'intended' }));
  onEvent(entry());
  onEvent(entry({ note: 'a note' }));
  onEvent(record('boot/poll'));
  pass(100);
  onEvent({ event: 'cleaning', open: 1 });
  onEvent(entry({ state: 'gone', goneAt: 1_100_000 }));
  onEvent(entry({ n: 2, name: 'berth-conf-7k2p-002', state: 'refused' }));
  onEvent({ event: 'ended', reason: 'completed' });
  expect(lines()).toEqual([
    'run 7k2p: 14 scenarios',
    '[3/14] waits for ONLINE (0 s, $0.00)',
    '  made instance berth-conf-7k2p-001 (i-1), $3.744 an hour',
    '  still at it: [3/14] waits for ONLINE · 1 running · 30 s · $0.0312',
    '  still at it: [3/14] waits for ONLINE · 1 running · 1 min 00 s · $0.0624',
    '  still at it: [3/14] waits for ONLINE · 1 running · 1 min 30 s · $0.0936',
    'cleaning up: 1 to destroy',
    '  gone instance berth-conf-7k2p-001 (i-1)',
    'ended: completed (1 min 40 s, $0.104)',
    '',
  ]);
});

it('without a terminal, reports a long wait at most every 30 seconds', () => {
  const { onEvent, pass, lines, hasTimer } = start({ isTerminal: false });
  onEvent(scenario);
  onEvent(waiting);
  pass(29);
  expect(lines()).toHaveLength(2);
  pass(62);
  expect(lines().slice(1, -1)).toEqual([
    '  still waiting for the instance to come ONLINE, 30 s by now (30 s, $0.00)',
    '  still waiting for the instance to come ONLINE, 1 min 00 s by now (1 min 00 s, $0.00)',
    '  still waiting for the instance to come ONLINE, 1 min 30 s by now (1 min 30 s, $0.00)',
  ]);
  onEvent({ event: 'ended', reason: 'completed' });
  expect(hasTimer()).toBe(false);
});

it('goes on waiting through the clean-up, whatever that asks', () => {
  const { onEvent, pass, lines } = start({ isTerminal: false });
  onEvent({ event: 'cleaning', open: 1 });
  onEvent({ event: 'waiting', text: 'until berth-conf-7k2p-001 is gone' });
  onEvent(record('cleanup/read-instance'));
  onEvent(record('cleanup/list'));
  pass(31);
  expect(lines().at(-2)).toContain('still waiting until berth-conf-7k2p-001 is gone');
});

it('keeps no process alive by its own timer', () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const { stop } = progress({
    write: () => {},
    isTerminal: true,
    columns: 80,
    clock: { now: () => 0, wall: () => 0 },
  });
  expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length).toBe(before);
  stop();
});

it('shows the first failure on a line of its own, in a terminal too', () => {
  const failed: RunEvent = {
    event: 'failed',
    text: 'first FAIL, with about 9 minutes left: INS-404-001: an early 404',
  };
  for (const isTerminal of [true, false]) {
    const shown = start({ isTerminal });
    shown.onEvent(scenario);
    shown.onEvent(failed);
    expect(shown.written.join('').replaceAll(CLEAR, '\n')).toContain(`\n${failed.text}\n`);
    shown.stop();
  }
});
