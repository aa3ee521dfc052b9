import { defineConfig } from 'vitest/config';

const report = process.env['BERTH_TEST_REPORT'];

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // Vitest leaves one core free, and of two that is half of them.
    maxWorkers: '100%',
    testTimeout: 20_000,
    // Where .ci/run wants a report for a program, beside the one for people.
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
  },
});
