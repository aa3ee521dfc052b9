import { describe, expect, it } from 'vitest';
import { findMissingFiles, findMistake, loadBerth, wordsOf } from './command-line.ts';
import { commandsOf, inlineCodeOf, pages, readPage, shellBlocksOf } from './pages.ts';

const berth = await loadBerth();
const mistakesOf = (line: string, whole: boolean): string[] =>
  wordsOf(line).flatMap((words) => findMistake(berth, words, whole) ?? []);

describe.each(pages)('%s', (page) => {
  const text = readPage(page);

  it('has no command that Berth does not take', () => {
    const commands = shellBlocksOf(text).flatMap(commandsOf);
    const inline = inlineCodeOf(text).flatMap(alternativesOf);
    expect([
      ...commands.flatMap((command) => mistakesOf(command, true).map((mistake) => [command, mistake])),
      ...inline.flatMap((command) => mistakesOf(command, false).map((mistake) => [command, mistake])),
    ]).toEqual([]);
  });

  it('names no file that is not there', () => {
    expect(shellBlocksOf(text).flatMap(commandsOf).flatMap(wordsOf).flatMap(findMissingFiles)).toEqual([]);
  });
});

/** `keys create\|list`: the commands that a cell of a table tells of together. */
function alternativesOf(code: string): string[] {
  const [found] = /\S+(?:\\\|\S+)+/.exec(code) ?? [];
  return found === undefined ? [code] : found.split('\\|').map((one) => code.replace(found, one));
}

it.each([
  ['berth kyes list', 'berth takes 0 arguments, not kyes list'],
  ['berth keys ls --jsn', 'berth keys ls knows no --jsn'],
  ['berth keys', 'berth keys does nothing by itself'],
  ['echo y | berth accounts create', 'berth accounts create needs 1 arguments'],
  ['npm run simm -- --seed 1', 'package.json has no script simm'],
  ['npm run -s berth -- serve --prot 1 &', 'berth serve knows no --prot'],
  ['OTEL_SDK_DISABLED=true berth marketplace mail lst', 'berth marketplace mail takes 0 arguments, not lst'],
])('%s is reported', (line, mistake) => {
  expect(mistakesOf(line, true)).toEqual([mistake]);
});

it('an option without its value is fine where a page tells of it, and not where it is to be pasted', () => {
  expect(mistakesOf('berth serve --port', false)).toEqual([]);
  expect(mistakesOf('berth serve --port', true)).toHaveLength(1);
});

it('what another program takes is left to it', () => {
  expect(
    mistakesOf('curl -d \'{"a": "b | berth nonsense"}\' http://127.0.0.1 # berth nonsense', true),
  ).toEqual([]);
});
