import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { onFirstSignal, withoutEchoes } from './signals.ts';

function newSource() {
  const source = new EventEmitter();
  const heard: string[] = [];
  const time = { ms: 0 };
  const signals = withoutEchoes(source, () => time.ms);
  return { source, heard, time, signals };
}

it('a signal that npm passes on after the terminal has sent it counts once; half a second later it counts again', () => {
  const { source, heard, time, signals } = newSource();
  signals.on('SIGINT', () => heard.push(`at ${time.ms}`));
  for (const ms of [0, 2, 499, 500, 502]) {
    time.ms = ms;
    source.emit('SIGINT', 'SIGINT');
  }
  expect(heard).toEqual(['at 0', 'at 500']);
});

it('another signal or another event is not an echo', () => {
  const { source, heard, signals } = newSource();
  for (const event of ['SIGINT', 'SIGTERM', 'uncaughtException']) signals.on(event, () => heard.push(event));
  for (const event of ['SIGINT', 'SIGTERM', 'uncaughtException', 'uncaughtException']) source.emit(event);
  expect(heard).toEqual(['SIGINT', 'SIGTERM', 'uncaughtException', 'uncaughtException']);
});

it('a removed listener receives nothing', () => {
  const { source, signals } = newSource();
  const listener = (): void => undefined;
  signals.on('SIGINT', listener);
  signals.off('SIGINT', listener);
  expect(source.eventNames()).toEqual([]);
});

it('the listener handles the first signal; the next one has its default effect', () => {
  const { source, heard, time, signals } = newSource();
  onFirstSignal(
    () => heard.push('first'),
    signals,
    (signal) => heard.push(`${signal}, with the listeners ${source.eventNames()}`),
  );
  source.emit('SIGINT', 'SIGINT');
  source.emit('SIGINT', 'SIGINT');
  expect(heard).toEqual(['first']);
  time.ms = 1_000;
  source.emit('SIGINT', 'SIGINT');
  expect(heard).toEqual(['first', 'SIGINT, with the listeners ']);
});
