import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { StoreUnavailable } from '../ports/errors.ts';
import { createLog, forPeople } from './log.ts';

/** Collects the lines that a log writes. */
function collect(): { stream: Writable; lines: () => string[] } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { stream, lines: () => chunks.join('').split('\n').filter(Boolean) };
}

it('writes readable lines on a terminal, with the level as a word, and an error on the same line', () => {
  const { stream, lines } = collect();
  const log = createLog('info', forPeople(stream));
  log.info({ instance: 'inst-1', request_id: 'req-1' }, 'a machine was asked for');
  log.error({ err: new Error('no answer') }, 'a step failed');
  expect(lines()).toEqual([
    expect.stringMatching(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: a machine was asked for \{"instance":"inst-1","request_id":"req-1"\}$/,
    ),
    expect.stringMatching(
      /^\[[\d:.]+\] ERROR: a step failed \{"err":\{"type":"Error","message":"no answer",/,
    ),
  ]);
});

it('writes JSON elsewhere, and censors what could be a secret in both', () => {
  for (const write of [(stream: Writable) => stream, (stream: Writable) => forPeople(stream)]) {
    const { stream, lines } = collect();
    createLog('info', write(stream)).info({ body: { password: 'hush' } }, 'a login');
    expect(lines().join()).not.toContain('hush');
    expect(lines()).toHaveLength(1);
  }
});

it('escapes all control characters of a terminal', () => {
  const { stream, lines } = collect();
  createLog('info', forPeople(stream)).info({ name: 'a\u001b[31m\u009b2J\u202eb' }, 'a name');
  for (const character of ['\u001b', '\u009b', '\u202e']) expect(lines().join('')).not.toContain(character);
});

it('names the cause of an unavailable database once, because every request logs it', () => {
  const { stream, lines } = collect();
  const err = new StoreUnavailable('ECONNREFUSED: connect', { cause: new Error('connect ECONNREFUSED') });
  createLog('info', stream).warn({ err }, 'request failed');
  expect(JSON.parse(lines()[0] ?? '').err).toEqual({
    type: 'StoreUnavailable',
    message: 'ECONNREFUSED: connect',
    stack: expect.any(Array),
  });
});
