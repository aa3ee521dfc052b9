import { expect, it } from 'vitest';
import { systemRandom } from '../../runtime/system.ts';
import { hashPassword, isPassword, PasswordChecks } from './password-checks.ts';

const HASH = 'scrypt$of the right one';
const from = (address: string) => ({ address, signal: new AbortController().signal });

/** Checks that take one turn of the event loop each, and counts of them. */
function counted() {
  let count = 0;
  let running = 0;
  let most = 0;
  const checks = new PasswordChecks(systemRandom, async (password, stored) => {
    count++;
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    return stored === HASH && password === 'right';
  });
  return { checks, count: () => count, most: () => most };
}

it('knows a password that was right before without a check, while a flood of wrong ones is under way', async () => {
  const { checks, count } = counted();
  expect(await checks.isRight('right', HASH, from('a'))).toBe(true);
  const flood = Array.from({ length: 500 }, (_, index) => checks.isRight(`wrong ${index}`, HASH, from('a')));
  const before = count();
  expect(await checks.isRight('right', HASH, from('a'))).toBe(true);
  expect(count()).toBe(before);
  expect(new Set(await Promise.all(flood))).toEqual(new Set([false]));
});

it('checks a right password that it does not know after two others at most, whatever another address sends', async () => {
  const { checks, count } = counted();
  const flood = Array.from({ length: 500 }, (_, index) => checks.isRight(`wrong ${index}`, HASH, from('a')));
  expect(await checks.isRight('right', HASH, from('b'))).toBe(true);
  expect(count()).toBeLessThan(10);
  await Promise.all(flood);
});

it('keeps no more than two CPUs busy', async () => {
  const { checks, most } = counted();
  await Promise.all(Array.from({ length: 50 }, (_, index) => checks.isRight('x', HASH, from(`${index}`))));
  expect(most()).toBeLessThanOrEqual(2);
});

it('forgets a password once the account has a new one, and never accepts a part of it', async () => {
  const { checks, count } = counted();
  await checks.isRight('right', HASH, from('a'));
  for (const [password, stored] of [
    ['right', 'scrypt$of a new one'],
    ['right', null],
    ['right ', HASH],
    ['', HASH],
  ] as const)
    expect([password, stored, await checks.isRight(password, stored, from('a'))]).toEqual([
      password,
      stored,
      false,
    ]);
  expect(count()).toBe(5);
});

it('checks by scrypt', async () => {
  const stored = await hashPassword('correct horse', systemRandom);
  const checks = new PasswordChecks(systemRandom);
  expect(await checks.isRight('correct horse', stored, from('a'))).toBe(true);
  expect(await isPassword('incorrect horse', stored)).toBe(false);
});
