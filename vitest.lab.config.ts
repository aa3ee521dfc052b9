import { defineConfig } from 'vitest/config';

/** Drivers against real engines: `npm run test:lab`, which starts this in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/lab/**/*.lab.test.ts'],
    pool: 'forks',
    // A guest that is emulated takes both cores.
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    experimental: { viteModuleRunner: false },
    expect: { poll: { timeout: 120_000, interval: 500 } },
  },
});
