import { type TestAPI, test } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { Sandbox, SandboxAccount } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

/** The fixtures of {@link sandboxTest}. A test that times out is broken off in all of them. */
export interface SandboxFixtures {
  /** The sandbox that all tests of a file share, with its clock. What this test arms, sets and creates ends with it. */
  sandbox: Sandbox;
  /** A tenant for this test only. */
  account: SandboxAccount;
  /** A sandbox for this test only, with its own clock. */
  ownSandbox: Sandbox;
  /** The sandbox of the file, for what lasts longer than a test. */
  sharedSandbox: Sandbox;
}

/**
 * Vitest's `test` with providers in this process. They start when a test first uses a fixture, and end after it. A fault
 * that a test arms and that never strikes fails the test, unless it has a `probability` or `must_strike: false`.
 */
export function sandboxTest(options: SandboxOptions = {}): TestAPI<SandboxFixtures> {
  return test.extend<SandboxFixtures>({
    sharedSandbox: [
      // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from it that this needs no other fixture
      async ({}, use) => {
        await using sandbox = await createSandbox(options);
        await use(sandbox);
      },
      { scope: 'file' },
    ],
    sandbox: async ({ sharedSandbox, signal }, use) => {
      await using sandbox = sharedSandbox.forTest({ signal });
      await use(sandbox);
    },
    account: async ({ sandbox }, use) => use(await sandbox.account()),
    ownSandbox: async ({ signal }, use) => {
      await using own = await createSandbox(options);
      await using sandbox = own.forTest({ signal });
      await use(sandbox);
    },
  });
}
