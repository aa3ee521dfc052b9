import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('a sandbox works while node:test’s timers are fake, and is broken off with a test that timed out', async () => {
  const file = join(import.meta.dirname, 'node-test.fixture.ts');
  const { NODE_V8_COVERAGE: _coverage, NODE_OPTIONS: _options, ...env } = process.env;
  const ran = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', file], {
    env,
  }).catch((error: { stdout: string }) => error);
  expect(ran.stdout).toMatch(/^# pass 3$/m);
  expect(ran.stdout).toMatch(/^# fail 0$/m);
  // The test that times out.
  expect(ran.stdout).toMatch(/^# cancelled 1$/m);
});
