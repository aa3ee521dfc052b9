import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The suite of examples/sandbox/vitest, all of its tests at the same time: for test/sandbox/clients.long.test.ts. */
export default defineConfig({
  resolve: {
    alias: {
      'berth/sandbox/vitest': fileURLToPath(new URL('src/compose/sandbox/vitest.ts', import.meta.url)),
    },
  },
  test: {
    include: ['examples/sandbox/vitest/*.test.ts'],
    sequence: { concurrent: true },
    maxConcurrency: 20,
    // A last resort against hanging, on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
