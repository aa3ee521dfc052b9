import { expect } from 'vitest';
import { sandboxTest } from './vitest.ts';

const test = sandboxTest({ providers: ['a'], marketplace: true });
const seen = new Set<unknown>();

for (const count of [1, 2])
  test(`gives test ${count} of a file the same sandbox, and an account of its own`, ({
    sandbox,
    account,
  }) => {
    seen.add(sandbox);
    expect(seen).toEqual(new Set([sandbox]));
    expect(account.name).toBe(`account-${count}`);
    expect(account.marketplace?.baseUrl).toBe('http://sandbox.test/api');
  });

test('gives a test its own sandbox on request', async ({ sandbox, ownSandbox }) => {
  expect(ownSandbox).not.toBe(sandbox);
  const before = sandbox.clock.now();
  await ownSandbox.clock.advance(60_000);
  expect(sandbox.clock.now()).toBe(before);
});
