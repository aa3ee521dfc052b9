import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { type ServingSandbox, serveSandbox } from '../compose/sandbox/serve.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-verdict-'));
const file = (name: string): string => join(folder, name);
let serving: ServingSandbox;

/** A client that reads one instance, which does not exist, without its region. */
beforeAll(async () => {
  serving = await serveSandbox({ clock: 'virtual' }, { host: '127.0.0.1', port: 0 });
  const { baseUrl, apiKey } = serving.sandbox.provider('a');
  await fetch(`${baseUrl}/instances/inst-1`, { headers: { authorization: `Bearer ${apiKey}` } });
  writeFileSync(file('key'), `${serving.sandbox.controlKey}\n`);
  const accepted = [
    { rule: 'sends-region', reason: 'one region' },
    { rule: 'polls-in-time', reason: 'old' },
  ];
  writeFileSync(file('baseline.json'), JSON.stringify({ accepted }));
});
afterAll(async () => {
  await serving.stop();
  rmSync(folder, { recursive: true });
});
afterEach(() => vi.unstubAllEnvs());

const verdict = (...args: string[]) => runMain(['sandbox', 'verdict', '--control', serving.origin, ...args]);

it('exits 1 and prints each rule, with the key from a file', async () => {
  const { code, stdout, stderr } = await verdict('--control-key-file', file('key'));
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout).toMatch(/^RESULT +RULE +WHY\n/);
  expect(stdout).toMatch(/^FAIL +sends-region +1 requests for inst-1 had no region \(journal #1\)$/m);
  expect(stdout).toMatch(/^not tested +creates-once +the client created nothing$/m);
  expect(stdout).toMatch(
    /\nThe client fails: 1 failed, 0 accepted, 2 passed, 7 not tested, in 1 requests\.\n$/,
  );
});

it('exits 0 with a baseline, names what can be removed, and writes the report', async () => {
  vi.stubEnv('BERTH_CONTROL_KEY', serving.sandbox.controlKey);
  const reports = ['--junit', file('junit.xml')];
  const { code, stdout } = await verdict('--baseline', file('baseline.json'), ...reports);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^accepted +sends-region .*\(journal #1\): one region$/m);
  expect(stdout).toContain(
    'The baseline accepts failures of polls-in-time, and there are none: remove that entry.',
  );
  expect(readFileSync(file('junit.xml'), 'utf8')).toContain('failures="0" errors="0" skipped="8"');
});

it('prints the verdict as data, for one account', async () => {
  const account = await serving.sandbox.account();
  const control = ['--control', `${serving.origin}/control/`, '--control-key-file', file('key')];
  const { code, stdout } = await runMain([
    'sandbox',
    'verdict',
    ...control,
    '--account',
    account.name,
    '--json',
  ]);
  expect([code, JSON.parse(stdout)]).toEqual([1, await serving.sandbox.verdict({ account: account.name })]);
});

it.each([
  [[], 'berth: The key of the control API is missing: give --control-key-file, or set BERTH_CONTROL_KEY.'],
  [['--control-key-file', '/none'], 'berth: --control-key-file /none cannot be read: ENOENT'],
  [
    ['--control-key-file', 'KEY', '--control', 'here'],
    'berth: --control here: give the URL of a sandbox, such as',
  ],
  [['--control-key-file', 'KEY', '--control', 'http://127.0.0.1:1'], 'gave no verdict: bad port.'],
  [['--control-key-file', 'BASELINE'], 'gave no verdict: Send the key of the control API'],
  [['--control-key-file', 'KEY', '--baseline', 'KEY'], '/key: '],
  [['--control-key-file', 'KEY', '--junit', '/none/x'], 'berth: --junit /none/x cannot be written: ENOENT'],
])('with %j it says what is wrong', async (args, message) => {
  vi.stubEnv('BERTH_CONTROL_KEY', '');
  const files: Record<string, string> = { KEY: file('key'), BASELINE: file('baseline.json') };
  const { code, stderr } = await verdict(...args.map((arg) => files[arg] ?? arg));
  expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
});
