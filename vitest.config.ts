import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LEFT_OUT, programs } from './test/support/programs.ts';
import { notInQuarantine, readQuarantine } from './test/support/quarantine.ts';
import { PATIENCE_MS } from './test/support/time/until.ts';

/**
 * Which tests a file holds is in its name: `X.test.ts` needs nothing that a machine may lack, and is cheap (`npm test`); a word
 * before that says what else it takes. docs/proofs.md says what runs when.
 */
const PLAIN = '**/+([!.]).test.ts';
const ROOMS = ['src', 'test', 'simulation', 'bench'];
const DATABASES = ['test/support/databases/memory-folder.ts', 'test/support/databases/shared-postgres.ts'];
const BUILT = 'test/support/processes/built-programs.ts';
const MINUTE_MS = 60_000;

type Settings = NonNullable<TestProjectInlineConfiguration['test']>;

/** A project whose files share a few processes, each of which loads a module once: a test leaves no state in modules. */
const together = (name: string, settings: Settings): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    isolate: false,
    // Node runs TypeScript by itself: nothing is transformed, and no module is replaced.
    experimental: { viteModuleRunner: false },
    globalSetup: DATABASES.slice(0, 1),
    setupFiles: ['test/support/file-cost.ts'],
    ...settings,
  },
});

/** A project whose files have a process each: they measure it, start others, or take long. */
const apart = (name: string, settings: Settings): TestProjectInlineConfiguration =>
  together(name, { isolate: true, ...settings });

/** Files that replace a module, which vitest must load for them. */
const MOCKED = '**/*.mocked.test.ts';

const testNamePattern = notInQuarantine(readQuarantine());

export default defineConfig({
  test: {
    ...(testNamePattern && { testNamePattern }),
    pool: 'forks',
    // No context of the user who runs the tests.
    env: { BERTH_CONTEXTS: '/dev/null/contexts.yaml' },
    maxWorkers: '100%',
    // Last resorts against hanging, on a machine that has other work too: no test is about them.
    testTimeout: 3 * MINUTE_MS,
    hookTimeout: 3 * MINUTE_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    reporters: ['default', './test/support/costs.ts'],
    projects: [
      together('unit', {
        include: ROOMS.map((room) => `${room}/${PLAIN}`),
        // V8 collects no garbage before it must: a process of many files would grow beyond 1 GB.
        execArgv: ['--max-old-space-size=640'],
      }),
      together('integration', {
        include: ['integration', ...programs]
          .filter((word) => !LEFT_OUT.has(word))
          .map((word) => `**/*.${word}.test.ts`),
      }),
      together('postgres', { include: ['**/*.postgres.test.ts'], globalSetup: DATABASES }),
      together('conformance', { include: [`conformance/${PLAIN}`] }),
      together('check', { include: ['**/*.check.ts'], globalSetup: [], maxWorkers: 1 }),
      apart('mocked', { include: [MOCKED], experimental: { viteModuleRunner: true } }),
      apart('long', {
        include: ['**/*.long.test.ts'],
        exclude: [...configDefaults.exclude, MOCKED],
        globalSetup: [...DATABASES, BUILT],
        // They wait for half of their time.
        maxWorkers: '150%',
        testTimeout: 15 * MINUTE_MS,
      }),
      apart('browser', { include: ['**/*.browser.test.ts'] }),
      apart('matrix', { include: ['conformance/**/*.matrix.ts'], testTimeout: 7 * MINUTE_MS }),
      apart('kill', {
        include: ['test/process/*.kill.ts'],
        globalSetup: [BUILT],
        // Each is a process of its own that mostly waits.
        maxConcurrency: 4,
      }),
      apart('month', {
        include: ['test/process/*.month.ts'],
        globalSetup: [BUILT],
        testTimeout: 30 * MINUTE_MS,
      }),
      apart('pace', {
        include: ['test/process/*.pace.ts'],
        globalSetup: [BUILT],
        testTimeout: 20 * MINUTE_MS,
      }),
      apart('lab', {
        include: ['test/lab/**/*.lab.test.ts'],
        globalSetup: [BUILT],
        // A guest that is emulated takes both cores.
        maxWorkers: 1,
        testTimeout: 30 * MINUTE_MS,
        hookTimeout: 20 * MINUTE_MS,
        expect: { poll: { timeout: 5 * MINUTE_MS, interval: 500 } },
      }),
      // The suite of an example, as its readers run it, all of its tests at the same time.
      apart('clients', {
        include: ['examples/sandbox/vitest/*.test.ts'],
        globalSetup: [],
        experimental: { viteModuleRunner: true },
        alias: {
          'berth/sandbox/vitest': fileURLToPath(new URL('src/compose/sandbox/vitest.ts', import.meta.url)),
        },
        sequence: { concurrent: true },
        maxConcurrency: 20,
      }),
    ],
  },
});
