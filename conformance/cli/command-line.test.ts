import { describe, expect, it } from 'vitest';
import { API_KEY, runCli } from './cli.fixture.ts';

const URL = 'https://127.0.0.1:1/v1';

/** Expects exit code 3, and one sentence of the command on standard error. */
async function expectRefusal(args: readonly string[], sentence: RegExp, env = {}): Promise<void> {
  const { code, out, err } = await runCli(args, { env });
  expect(err).toMatch(sentence);
  expect(err).toMatch(/^berth conformance: [^\n]+[.?]\n$/);
  expect(err).not.toMatch(/\n\s+at /);
  expect({ code, out }).toEqual({ code: 3, out: '' });
}

describe('a mistake on the command line', () => {
  it.each([
    ['no base_url', [], /missing required argument 'base_url'.*--help/],
    ['an unknown option', ['--levle', 'full', URL], /unknown option '--levle'.*Did you mean --level/],
    ['a level that is none', ['--level', 'all', URL], /Allowed choices are read-only, lifecycle, full/],
    ['a cost that is no number', ['--max-cost', 'ten', URL], /Give USD, as a number from 0/],
    ['a negative cost', ['--max-cost=-1', URL], /Give USD/],
    ['no time at all', ['--max-minutes', '0', URL], /Give minutes, as a number from 1/],
    [
      'a poll interval in fractions',
      ['--poll-interval-ms', '0.5', URL],
      /Give milliseconds, as a whole number/,
    ],
    ['a patience in words', ['--ready-timeout-s', '10m', URL], /Give seconds/],
    ['a race without units', ['--race', 'gpu-l4', '--level', 'full', URL], /Give OFFER=UNITS/],
    ['a race below level full', ['--race', 'gpu-l4=2', URL], /--race needs --level full/],
    ['a command that is misspelt', ['docter'], /did you mean `berth conformance doctor`\?/],
    ['options before the command', ['--level', 'full', 'doctor', URL], /write --level after `doctor`/],
    [
      'no scheme',
      ['orchestrator.example/v1'],
      /does not begin with https:\/\/: write https:\/\/orchestrator/,
    ],
    ['another scheme', ['ftp://orchestrator.example/v1'], /begins with ftp:/],
    ['a query', [`${URL}?x=1`], /has a query or a fragment: write https:\/\/127.0.0.1:1\/v1/],
    ['a password in the URL', ['https://me:hunter2@h.example/v1'], /leave them out/],
    [
      'an unknown id',
      ['--only', 'ins-404-01', URL],
      /--only INS-404-01: there is no such id: did you mean INS-404-0\d\d\?/,
    ],
    ['an id of nothing', ['--only', ' , ', URL], /--only names no id/],
    [
      'a check of a higher level',
      ['--only', 'SSH', '--level', 'read-only', URL],
      /needs --level (lifecycle|full)/,
    ],
    ['an authority that is none', ['--ca-file', '/dev/null', URL], /--ca-file \/dev\/null cannot be used/],
    [
      'an output in no folder',
      ['--json', '/nowhere/r.json', URL],
      /--json .* \(there is no such file or folder\)/,
    ],
    ['an output that is a folder', ['--html', '/tmp', URL], /--html \/tmp is a folder/],
    ['one file for two outputs', ['--json', '/tmp/x-y', '--html', '/tmp/../tmp/x-y', URL], /is named twice/],
    ['an id to explain that is none', ['explain', 'INS-404-0001'], /did you mean INS-404-001\?/],
    ['a transcript that is not there', ['judge', '/nowhere'], /\/nowhere cannot be read/],
  ] as const)('is one sentence: %s', async (_what, args, sentence) => {
    await expectRefusal(args, sentence);
  });

  it.each([
    ['--api-key', API_KEY, URL],
    [`--api-key=${API_KEY}`, URL],
    ['--second-api-key', API_KEY, URL],
    ['doctor', '--api-key', API_KEY, URL],
    ['sweep', '--api-key', API_KEY, URL],
  ])('a key among the arguments is refused, and why, and is not repeated: %s %s', async (...args) => {
    await expectRefusal(
      args,
      /there is no --(second-)?api-key: .*everyone on this machine can see.*api-key-file/i,
    );
    const { err } = await runCli(args, { env: { BERTH_API_KEY: 'another-key' } });
    expect(err).not.toContain(API_KEY);
  });

  it('does not repeat what an unknown option is given, which may be a secret', async () => {
    const { err } = await runCli([`--token=${API_KEY}`, URL], { env: { BERTH_API_KEY: 'another-key' } });
    expect(err).toMatch(/unknown option '--token'/);
    expect(err).not.toContain(API_KEY);
  });

  it('does not repeat a password in the base_url', async () => {
    expect((await runCli(['https://me:hunter2@h.example/v1'])).err).not.toMatch(/hunter2|me:/);
  });
});

describe('the API key', () => {
  it.each([
    ['there is none', '', /the API key in BERTH_API_KEY is empty/],
    ['with its scheme', 'Bearer abcdefgh', /begins with "Bearer ": leave that out/],
    ['over two lines', 'abcd\nefghi', /has a line break inside/],
    ['in quotes', '"abcdefghi"', /is in quotes/],
    ['with a blank', 'abcdefghi ', /has a blank/],
    ['with a zero-width space', 'abcd\u200befghi', /has characters that a header cannot carry/],
    ['as an assignment', 'BERTH_API_KEY=abcdefghi', /is an assignment/],
  ])('is refused where it cannot be right: %s', async (_what, BERTH_API_KEY, sentence) => {
    await expectRefusal([URL], sentence, { BERTH_API_KEY });
  });

  it('is asked for where there is none', async () => {
    const { code, err } = await runCli([URL], { parts: { env: {} } });
    expect(code).toBe(3);
    expect(err).toMatch(/there is no API key: put it in BERTH_API_KEY, or into a file .* --api-key-file/);
  });
});

describe('without a target', () => {
  it('lists every requirement, and explains one', async () => {
    const list = await runCli(['list', '--json']);
    const rows: { id: string }[] = JSON.parse(list.out);
    expect(rows.length).toBeGreaterThan(100);
    const text = await runCli(['list']);
    for (const { id } of rows) expect(text.out).toContain(id);
    const explained = await runCli(['explain', 'ins-404-001']);
    expect(explained).toMatchObject({ code: 0, err: '' });
    expect(explained.out).toContain('INS-404-001');
  });

  it('shows help, which names every command', async () => {
    const { code, out } = await runCli(['--help']);
    expect(code).toBe(0);
    for (const name of ['doctor', 'sweep', 'judge', 'explain', 'list'])
      expect(out).toMatch(new RegExp(`^  ${name}[ |]`, 'm'));
    expect(out).not.toContain('--api-key ');
  });
});
