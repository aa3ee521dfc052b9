import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { asOrdinaryUser } from '../../test/support/processes/ordinary-user.ts';
import { ConfigError } from './findings.ts';
import { readYamlFile } from './yaml-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-yaml-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

/** Returns the findings as `line:column message`, or as the message if they have no place. */
function findingsOf(file: string): string[] {
  try {
    readYamlFile(file);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.findings.map(({ line, column, message }) =>
      line === undefined ? message : `${line}:${column} ${message}`,
    );
  }
}

const unclosed = (what: string) =>
  expect.stringMatching(new RegExp(`^${what} before this place is never closed`));

describe('a YAML file', () => {
  it.each([
    ['empty', '', {}],
    ['of comments only', '# nothing\n', {}],
    ['with a byte order mark', '\ufeffa: 1\n', { a: 1 }],
    ['with CRLF line ends', 'a: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
    ['with an alias', 'a: &x [1]\nb: *x\n', { a: [1], b: [1] }],
    ['of YAML 1.2, where yes and 012 are no booleans and no octals', 'a: yes\nb: 012\n', { a: 'yes', b: 12 }],
  ])('%s is read', (_what, text, value) => {
    expect(readYamlFile(write('good.yaml', text)).value).toEqual(value);
  });

  it.each([
    ['a duplicate key', 'a: 1\nb: 2\na: 3\n', ['3:1 Map keys must be unique']],
    ['a duplicate key deep inside', 'a:\n  b: 1\n  b: 2\n', ['3:3 Map keys must be unique']],
    ['a list at its root', '- a\n', ['1:1 expected a mapping of keys to values']],
    ['a text at its root', 'hello\n', ['1:1 expected a mapping of keys to values']],
    ['a list that does not end', 'a: [1, "]"\nb: 2\n', [unclosed('2:1 a bracket')]],
    ['a mapping that does not end', '# {\na: { b: { c: 1 }\nd: e{\n', [unclosed('3:1 a bracket')]],
    ['a quote that does not end', "a: 'x'\nb: 'y\nc: 3\n", [unclosed('4:1 a quote')]],
    [
      'two values on a line',
      'a: 1\nb: http: 2\n',
      [expect.stringMatching(/^2:4 expected one "key: value" a line/)],
    ],
    ['a tab as indentation', 'a:\n\tb: 1\n', [expect.stringMatching(/^2:\d Tabs are not allowed/)]],
    ['an unknown tag', 'a: !!python/object:os.system x\n', [expect.stringMatching(/^1:4 Unresolved tag/)]],
    [
      'two documents',
      'a: 1\n---\nb: 2\n',
      ['2:1 expected one document, but a second one begins here: remove the ---'],
    ],
    ['a NUL', 'a:\n  - "b\\0"\n', ['2:5 expected text without NUL or half a surrogate pair']],
    ['half a key', '"a\\ud800": 1\n', ['1:1 expected text without NUL or half a surrogate pair']],
    ['a key that is no text', '? [a]\n: 1\n', ['1:3 expected a name as the key, got a list or a mapping']],
    ['an alias that goes nowhere', 'a: *x\n', [expect.stringMatching(/^Unresolved alias .*: x$/)]],
    ['an alias to itself', 'a: &x { b: *x }\n', [expect.stringContaining('aliases expand')]],
    ['aliases that unfold to billions', bomb(), [expect.stringContaining('aliases expand')]],
    [
      'nesting deeper than any reader goes',
      '['.repeat(200_000),
      [expect.stringContaining('nested too deeply')],
    ],
    ['bytes that are no UTF-8', Buffer.from([0x61, 0x3a, 0x20, 0xff]), ['expected UTF-8 text']],
    ['five megabytes', `a: ${'x'.repeat(5_000_000)}\n`, ['expected at most 4194304 bytes, got 5000004']],
  ])('with %s is refused', (_what, text, findings) => {
    expect(findingsOf(write('bad.yaml', text)).slice(0, 1)).toEqual(findings);
  });

  it('reports every duplicate key, but no consequences of the first syntax error', () => {
    const text = 'a: 1\na: 2\nb: [ x\nc: 3\nd: 4\nd: 5\n';
    expect(findingsOf(write('many.yaml', text))).toEqual([
      '2:1 Map keys must be unique',
      unclosed('4:1 a bracket'),
    ]);
  });

  it('is refused if it is missing, a directory or a device', () => {
    mkdirSync(join(folder, 'sub'));
    expect(findingsOf(join(folder, 'none.yaml'))).toEqual(['there is no such file']);
    expect(findingsOf(join(folder, 'sub'))).toEqual(['expected a YAML file, got a directory']);
    expect(findingsOf('/dev/zero')).toEqual(['expected a YAML file, got a device']);
    expect(findingsOf(join(folder, 'good.yaml', 'x'))).toEqual([expect.stringContaining('ENOTDIR')]);
  });

  it('that may not be read is refused', async () => {
    const file = write('secret.yaml', 'a: 1\n');
    chmodSync(file, 0);
    const findings = await asOrdinaryUser(() => findingsOf(file));
    expect(findings).toEqual(['the file cannot be read: permission denied']);
  });

  it('may come through a pipe', () => {
    const pipe = join(folder, 'pipe');
    const script = 'mkfifo "$0" && { printf "a: 1\\n" > "$0" & }';
    execFileSync('sh', ['-c', script, pipe], { stdio: 'ignore' });
    expect(readYamlFile(pipe).value).toEqual({ a: 1 });
  });
});

describe('the place of a node', () => {
  const text = [
    '# top',
    'server:',
    '  port: 1',
    'list:',
    '  - id: a',
    '    tags: [x, yy]',
    '  - &b { id: b }',
    'again: *b',
    '',
  ].join('\n');
  const yaml = readYamlFile(write('places.yaml', text));

  it.each([
    [['server'], 'value', '2:1'],
    [['server', 'port'], 'value', '3:9'],
    [['server', 'port'], 'key', '3:3'],
    [['server', 'host'], 'value', '2:1'],
    [['list', 0], 'value', '5:5'],
    [['list', 0, 'id'], 'value', '5:9'],
    [['list', 0, 'name'], 'value', '5:5'],
    [['list', 0, 'tags', 1], 'value', '6:15'],
    [['list', 1, 'id'], 'key', '7:10'],
    [['list', 7, 'id'], 'value', '4:1'],
    [['again', 'id'], 'key', '7:10'],
    [['again'], 'value', '8:8'],
    [['nothing', 'at', 'all'], 'value', '1:1'],
    [[], 'value', '1:1'],
  ] as const)('at %j (%s) is %s', (path, at, place) => {
    const { line, column } = yaml.locate(path, at);
    expect(`${line}:${column}`).toBe(place);
  });
});

/** Nine lists; each contains the previous list nine times. */
function bomb(): string {
  const names = [...'abcdefghi'];
  return names
    .map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? 'lol' : `*${names[index - 1]}`)
          .join(', ')}]\n`,
    )
    .join('');
}
