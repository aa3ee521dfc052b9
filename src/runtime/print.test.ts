import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createLog } from './log.ts';
import { printLine, printTable, toPrintable } from './print.ts';

const EVIL = 'a\u001b[2Jb\u009bc\u202ed\u2028e\u0007\u007f';
const ESCAPED = 'a\\u001b[2Jb\\u009bc\\u202ed\\u2028e\\u0007\\u007f';

it('escapes control characters and bidirectional marks, and nothing else', () => {
  expect(toPrintable(EVIL)).toBe(ESCAPED);
  expect(toPrintable('имя 🚀 naïve\n\tid \\u001b')).toBe('имя 🚀 naïve\n\tid \\u001b');
});

it.each([
  ['zero-width and soft hyphen', 'a\u200bb\u00adc', 'a\\u200bb\\u00adc'],
  ['a filler that looks like nothing', 'a\u3164b', 'a\\u3164b'],
  ['a tag beyond the first plane', 'a\u{e0041}', 'a\\udb40\\udc41'],
  ['half a surrogate pair', 'a\ud83d', 'a\\ud83d'],
])('shows %s, as JSON escapes it', (_what, text, shown) => {
  expect(toPrintable(text)).toBe(shown);
  expect(JSON.parse(`"${shown}"`)).toBe(text);
});

it('applies to all output of a command; a line and a table cell stay on one line', () => {
  const written: string[] = [];
  const write = vi
    .spyOn(process.stdout, 'write')
    .mockImplementation((text) => written.push(String(text)) > 0);
  onTestFinished(() => write.mockRestore());
  printLine(EVIL);
  printLine(`${EVIL}\nforged`);
  printTable(['NAME', 'ID'], [[`${EVIL}\nforged`, '1']]);
  expect(written[0]).toBe(`${ESCAPED}\n`);
  expect(written).toHaveLength(4);
  expect(written[1]).toBe(`${ESCAPED}\\u000aforged\n`);
  expect(written[3]).toBe(`${ESCAPED}\\u000aforged  1\n`);
});

it('applies to every line of the log, which stays equivalent JSON', () => {
  const stream = new PassThrough();
  createLog('info', stream).info({ name: EVIL }, EVIL);
  const line = String(stream.read());
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it must not have
  expect(line).not.toMatch(/[\u007f-\u009f\u2028-\u202e\u001b]/);
  expect(JSON.parse(line)).toMatchObject({ name: EVIL, msg: EVIL });
});
