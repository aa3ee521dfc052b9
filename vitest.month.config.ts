import { defineConfig } from 'vitest/config';

/** A month of the monitor, in virtual time, for each provider that cheats or is lawful: `npm run conformance:month`. */
export default defineConfig({
  test: {
    include: ['test/process/*.month.ts'],
    pool: 'forks',
    globalSetup: ['test/support/processes/built-programs.ts'],
    maxWorkers: '100%',
    // A last resort against hanging, on a machine that has other work too.
    testTimeout: 1_800_000,
  },
});
