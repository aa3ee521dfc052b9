import { type TestAPI, test } from 'vitest';
import type { SandboxOptions } from '../sandbox/options.ts';
import type { Sandbox, SandboxAccount } from '../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

/** What a test made by {@link sandboxTest} gets. */
export interface SandboxFixtures {
  /** One for all tests of a file: its clock and its faults are theirs together. */
  sandbox: Sandbox;
  /** A tenant that only this test has. */
  account: SandboxAccount;
  /** A sandbox that only this test has, with a clock of its own. */
  ownSandbox: Sandbox;
}

/** Vitest's `test`, with providers in this process: they are started when a test first asks for one, and ended after it. */
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
