import { type TestAPI, test } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

/** The fixture of {@link sandboxTest}. */
export interface SandboxFixtures {
  /** A sandbox for this test only. It ends with the test, also with one that times out. */
  sandbox: Sandbox;
}

/**
 * Vitest's `test` with providers in this process, for each test that uses `sandbox`. A fault that a test arms and that never
 * triggers fails the test, unless it has a `probability` or `must_trigger: false`.
 */
export function sandboxTest(options: SandboxOptions = {}): TestAPI<SandboxFixtures> {
  return test.extend<SandboxFixtures>({
    sandbox: async ({ signal }, use) => {
      await using sandbox = await createSandbox({ must_trigger: true, ...options, signal });
      await use(sandbox);
    },
  });
}
