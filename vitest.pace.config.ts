import { defineConfig } from 'vitest/config';

/** The suite at the pace of the contract, in real time: `npm run conformance:pace`. */
export default defineConfig({
  test: {
    include: ['test/process/*.pace.ts'],
    pool: 'forks',
    globalSetup: ['test/support/processes/built-programs.ts'],
    // A run of level lifecycle ends by itself within an hour, and this one in minutes.
    testTimeout: 1_200_000,
    hookTimeout: 180_000,
  },
});
