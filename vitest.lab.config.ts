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
    // A guest that is emulated takes both cores.
    maxWorkers: 1,
    sequence: { sequencer: NewcomersFirst },
    testTimeout: 600_000,
    hookTimeout: 600_000,
    experimental: { viteModuleRunner: false },
    expect: { poll: { timeout: 120_000, interval: 500 } },
  },
});
