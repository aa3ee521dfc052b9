import { spawnSync } from 'node:child_process';
import { configDefaults, defineConfig } from 'vitest/config';

/** `….openssh.test.ts` log in as a user would; where there is no OpenSSH client they are left out, aloud. */
const hasOpenSsh = ['ssh', 'ssh-keygen'].every((program) => spawnSync(program, ['-V']).error === undefined);
if (!hasOpenSsh)
  process.stderr.write('No OpenSSH client here: the tests that log in with it are left out.\n');

/** `….browser.test.ts` open a page in Debian's Chromium; they run when they are asked for. */
const hasBrowser = process.env['BERTH_TEST_BROWSER'] === '1';

/** `….long.test.ts` take longer than `npm test` has time for; they run when they are asked for. */
const hasTime = process.env['BERTH_TEST_LONG'] === '1';

const leftOut = [
  ...(hasOpenSsh ? [] : ['**/*.openssh.test.ts']),
  ...(hasBrowser ? [] : ['**/*.browser.test.ts']),
  ...(hasTime ? [] : ['**/*.long.test.ts']),
];

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'conformance/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...leftOut],
    pool: 'forks',
    // Vitest leaves one core free, and of two that is half of them.
    maxWorkers: '100%',
    testTimeout: 20_000,
  },
});
