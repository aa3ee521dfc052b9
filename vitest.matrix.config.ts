import { defineConfig } from 'vitest/config';

/** Every mutant and every lawful variation: `npm run conformance:matrix`. */
export default defineConfig({
  test: {
    include: ['conformance/**/*.matrix.ts'],
    pool: 'forks',
    maxWorkers: '100%',
    testTimeout: 400_000,
    hookTimeout: 180_000,
  },
});
