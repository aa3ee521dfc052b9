import { spawnSync } from 'node:child_process';
import { configDefaults, defineConfig } from 'vitest/config';

const report = process.env['BERTH_TEST_REPORT'];

/** `….openssh.test.ts` log in as a user would; where there is no OpenSSH client they are left out, aloud. */
const hasOpenSsh = ['ssh', 'ssh-keygen'].every((program) => spawnSync(program, ['-V']).error === undefined);
if (!hasOpenSsh)
  process.stderr.write('No OpenSSH client here: the tests that log in with it are left out.\n');

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'conformance/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: hasOpenSsh ? configDefaults.exclude : [...configDefaults.exclude, '**/*.openssh.test.ts'],
    pool: 'forks',
    // Vitest leaves one core free, and of two that is half of them.
    maxWorkers: '100%',
    testTimeout: 20_000,
    // Where .ci/run wants a report for a program, beside the one for people.
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
  },
});
