import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What a new user has comes first: README's own machine, a single daemon. */
class NewcomersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isNewcomers = ({ moduleId }: TestSpecification): boolean => /\/(readme|single)\./.test(moduleId);
    return (await super.sort(files)).sort((a, b) => Number(isNewcomers(b)) - Number(isNewcomers(a)));
  }
}

/** Drivers against real engines: `npm run test:lab`, which starts this in namespaces of its own. */
export default defineConfig({
  test: {
    include: ['test/lab/**/*.lab.test.ts'],
    pool: 'forks',
    globalSetup: ['test/support/processes/built-programs.ts'],
    // A guest that is emulated takes both cores.
    maxWorkers: 1,
    sequence: { sequencer: NewcomersFirst },
    // On a machine with half the CPU too; the run as a whole has its own limit.
    testTimeout: 1_800_000,
    hookTimeout: 1_200_000,
    experimental: { viteModuleRunner: false },
    expect: { poll: { timeout: 300_000, interval: 500 } },
  },
});
