import { type TestAPI, test } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { Sandbox, SandboxAccount } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

/** The fixtures of {@link sandboxTest}. */
export interface SandboxFixtures {
  /** One sandbox for all tests of a file, which share its clock and its faults. */
  sandbox: Sandbox;
  /** A tenant for this test only. */
  account: SandboxAccount;
  /** A sandbox for this test only, with its own clock. */
  ownSandbox: Sandbox;
}

/** Vitest's `test` with providers in this process. They start when a test first uses a fixture, and end after it. */
export function sandboxTest(options: SandboxOptions = {}): TestAPI<SandboxFixtures> {
  return test.extend<SandboxFixtures>({
    sandbox: [
      // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from it that this needs no other fixture
      async ({}, use) => {
        await using sandbox = await createSandbox(options);
        await use(sandbox);
      },
      { scope: 'file' },
    ],
    account: async ({ sandbox }, use) => use(await sandbox.account()),
    // biome-ignore lint/correctness/noEmptyPattern: as above
    ownSandbox: async ({}, use) => {
      await using sandbox = await createSandbox(options);
      await use(sandbox);
    },
  });
}
