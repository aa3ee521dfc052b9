import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { onFirstSignal, withoutEchoes } from './signals.ts';

function newSource() {
  const source = new EventEmitter();
  const calls: string[] = [];
  const time = { ms: 0 };
  const signals = withoutEchoes(source, () => time.ms);
  return { source, calls, time, signals };
}

it('a signal that npm passes on after the terminal has sent it counts once; half a second later it counts again', () => {
  const { source, calls, time, signals } = newSource();
  signals.on('SIGINT', () => calls.push(`at ${time.ms}`));
  for (const ms of [0, 2, 499, 500, 502]) {
    time.ms = ms;
    source.emit('SIGINT', 'SIGINT');
  }
  expect(calls).toEqual(['at 0', 'at 500']);
});

it('another signal or another event is not an echo', () => {
  const { source, calls, signals } = newSource();
  for (const event of ['SIGINT', 'SIGTERM', 'uncaughtException']) signals.on(event, () => calls.push(event));
  for (const event of ['SIGINT', 'SIGTERM', 'uncaughtException', 'uncaughtException']) source.emit(event);
  expect(calls).toEqual(['SIGINT', 'SIGTERM', 'uncaughtException', 'uncaughtException']);
});

it('a removed listener receives nothing', () => {
  const { source, signals } = newSource();
  const listener = (): void => undefined;
  signals.on('SIGINT', listener);
  signals.off('SIGINT', listener);
  expect(source.eventNames()).toEqual([]);
});

it('the listener handles the first signal; the next one has its default effect', () => {
  const { source, calls, time, signals } = newSource();
  onFirstSignal(
    () => calls.push('first'),
    signals,
    (signal) => calls.push(`${signal}, with the listeners ${source.eventNames()}`),
  );
  source.emit('SIGINT', 'SIGINT');
  source.emit('SIGINT', 'SIGINT');
  expect(calls).toEqual(['first']);
  time.ms = 1_000;
  source.emit('SIGINT', 'SIGINT');
  expect(calls).toEqual(['first', 'SIGINT, with the listeners ']);
});
