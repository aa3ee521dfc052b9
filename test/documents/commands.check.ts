import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findMissingFiles, findMistake, loadBerth, wordsOf } from './command-line.ts';
import { commandsOf, inlineCodeOf, pages, readPage, root, shellBlocksOf } from './pages.ts';

const berth = await loadBerth();
const mistakesOf = (line: string, whole: boolean): string[] =>
  wordsOf(line).flatMap((words) => findMistake(berth, words, whole) ?? []);

function problemsOf(text: string): string[] {
  const commands = shellBlocksOf(text).flatMap(commandsOf);
  const inline = inlineCodeOf(text).flatMap(alternativesOf);
  return [
    ...commands.flatMap((command) => mistakesOf(command, true).map((mistake) => `${command}: ${mistake}`)),
    ...inline.flatMap((command) => mistakesOf(command, false).map((mistake) => `${command}: ${mistake}`)),
    ...commands.flatMap(wordsOf).flatMap(findMissingFiles),
  ];
}

/** `keys create\|list`: the commands that a cell of a table tells of together. */
function alternativesOf(code: string): string[] {
  const [found] = /\S+(?:\\\|\S+)+/.exec(code) ?? [];
  return found === undefined ? [code] : found.split('\\|').map((one) => code.replace(found, one));
}

it('no page has a command that Berth does not take, or a file that is not there', () => {
  expect(pages.length).toBeGreaterThan(20);
  const problems = pages.flatMap((page) =>
    problemsOf(readPage(page)).map((problem) => `${page}: ${problem}`),
  );
  expect(problems).toEqual([]);
});

it('a walk-through writes no key and no configuration that git would take', () => {
  const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n');
  const text = ['README.md', 'docs/marketplace.md'].map(readPage).join('\n').replaceAll('\\\n', ' ');
  const keys = [...text.matchAll(/ssh-keygen .*-f \.\/(\S+)/g)].flatMap(([, key]) => [key, `${key}.pub`]);
  const files = [...text.matchAll(/^cat > (\S+)/gm)].map(([, file]) => file);
  expect([keys.length, files.length]).not.toContain(0);
  expect([...keys, ...files].filter((file) => !ignored.includes(`/${file}`))).toEqual([]);
});

it.each([
  ['berth kyes list', 'berth takes 0 arguments, not kyes list'],
  ['berth keys ls --jsn', 'berth keys ls knows no --jsn'],
  ['berth keys', 'berth keys does nothing by itself'],
  ['echo y | berth accounts create', 'berth accounts create needs 1 arguments'],
  ['npm run simm -- --seed 1', 'package.json has no script simm'],
  ['npm run -s berth -- serve --prot 1 &', 'berth serve knows no --prot'],
  ['A=true berth marketplace mail lst # berth nonsense', 'berth marketplace mail takes 0 arguments, not lst'],
  ['sh examples/none.sh', 'examples/none.sh'],
])('%s is reported', (line, mistake) => {
  expect(problemsOf(`\`\`\`sh\n${line}\n\`\`\`\n`)).toEqual([
    expect.stringMatching(new RegExp(`${mistake}$`)),
  ]);
});

it('an option may lack its value where a page tells of it, and what another program takes is left to it', () => {
  const curl = 'curl -d \'{"a": "b | berth nonsense"}\' http://127.0.0.1';
  expect(problemsOf(`Or \`berth serve --port\`.\n\`\`\`sh\n${curl}\n\`\`\`\n`)).toEqual([]);
  expect(problemsOf('```sh\nberth serve --port\n```\n')).toHaveLength(1);
});
