import { defineConfig } from 'vitest/config';

/** The command of the conformance suite, killed at every step of a run: `npm run conformance:kill`. */
export default defineConfig({
  test: {
    include: ['test/process/*.kill.ts'],
    pool: 'forks',
    globalSetup: ['test/support/processes/built-programs.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Each is a process of its own that mostly waits.
    maxConcurrency: 4,
  },
});
