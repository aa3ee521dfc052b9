import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';
import { START_AT } from './options.ts';
import type { SandboxAccount } from './parts.ts';
import type { Sandbox } from './sandbox.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const DAY_MS = 86_400_000;

/** Calls the marketplace as the user of an account. @throws {Error} unless the answer is 2xx */
async function ask(
  { fetch, defaultAccount }: Sandbox,
  method: string,
  path: string,
  body?: unknown,
  { marketplace }: SandboxAccount = defaultAccount,
) {
  const response = await fetch(`/api${path}`, {
    method,
    headers: { authorization: `Bearer ${marketplace?.apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const cpuOffer = {
  provider: 'provider-b',
  offerId: 'b-cpu-4x16-spot',
  gpuCount: 0,
  region: 'us-ashburn',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'SPOT',
  ssh_public_key: SSH_KEY,
};

/** The cost of this run at 0.03 USD an hour. Billing rounds down once. */
function costOf({ startedAt, stoppedAt }: { startedAt: string; stoppedAt: string }): number {
  return Math.floor((30_000 * (Date.parse(stoppedAt) - Date.parse(startedAt))) / 3_600_000) / 1_000_000;
}

async function balanceOf(sandbox: Sandbox, account?: SandboxAccount): Promise<number> {
  return (await ask(sandbox, 'GET', '/balance', undefined, account)).teams[0].balance;
}

it('deploys, bills and terminates through the marketplace', async () => {
  await using sandbox = await createSandbox({ providers: ['b'], marketplace: { credit_usd: 5 } });
  const { id } = await ask(sandbox, 'POST', '/deployments', cpuOffer);
  await sandbox.clock.advance(60_000);
  expect(await ask(sandbox, 'GET', `/deployments/${id}`)).toMatchObject({ status: 'running' });
  await sandbox.clock.advance(3_600_000);
  await ask(sandbox, 'DELETE', `/deployments/${id}`);
  const ended = await ask(sandbox, 'GET', `/deployments/${id}`);
  expect(ended).toMatchObject({ status: 'terminated', stoppedAt: '2026-01-01T01:01:00.000Z' });
  expect(ended.totalCost).toBe(costOf(ended));
  expect(await balanceOf(sandbox)).toBeCloseTo(5 - costOf(ended), 9);
});

it('skips idle weeks, yet mails at each threshold, and ends what runs once the balance and the grace are used up', async () => {
  await using sandbox = await createSandbox({ providers: ['b'], marketplace: { credit_usd: 12 } });
  const { id } = await ask(sandbox, 'POST', '/deployments', cpuOffer);
  await sandbox.clock.advance(30 * DAY_MS);
  const ended = await ask(sandbox, 'GET', `/deployments/${id}`);
  expect(ended).toMatchObject({ status: 'terminated' });
  expect(ended.totalCost).toBe(costOf(ended));
  const emptyAt = Date.parse(ended.startedAt) + 400 * 3_600_000;
  const hoursLeft = sandbox.mails.map(({ at }) => Math.round((emptyAt - at) / 360_000) / 10);
  expect(hoursLeft).toEqual([12, 6, 3, 1, 0.5, 0.2, 0.1, 0].map((hours) => expect.closeTo(hours, 0)));
  const endedAfterMs = Date.parse(ended.stoppedAt) - emptyAt;
  expect(endedAfterMs).toBeGreaterThanOrEqual(3_600_000);
  expect(endedAfterMs).toBeLessThan(3_600_000 + 120_000);
  expect(sandbox.clock.now()).toBe(START_AT + 30 * DAY_MS);
});

it('bills up to the end of an idle month without a poll of it [sandbox-idle-month]', async () => {
  await using sandbox = await createSandbox({ providers: ['b'], marketplace: true });
  const { id } = await ask(sandbox, 'POST', '/deployments', cpuOffer);
  await sandbox.clock.advance(20 * 60_000);
  const { startedAt } = await ask(sandbox, 'GET', `/deployments/${id}`);
  await sandbox.control.journal.clear();
  await sandbox.clock.advance(30 * DAY_MS);
  const polls = await sandbox.control.journal.entries({ operation: 'getInstance' });
  const bill = await ask(sandbox, 'GET', `/deployments/${id}`);
  const stoppedAt = new Date(sandbox.clock.now()).toISOString();
  expect([polls.length, bill.totalCost]).toEqual([0, costOf({ startedAt, stoppedAt })]);
  await sandbox.clock.advance(30_000);
  expect(await sandbox.control.journal.entries({ operation: 'getInstance' })).not.toEqual([]);
});

it('comes to the same whether idle time is skipped or lived through', async () => {
  const live = async (steps: readonly number[]) => {
    await using sandbox = await createSandbox({ providers: ['b'], marketplace: true });
    const { id } = await ask(sandbox, 'POST', '/deployments', cpuOffer);
    for (const ms of steps) await sandbox.clock.advance(ms);
    await ask(sandbox, 'DELETE', `/deployments/${id}`);
    return [await ask(sandbox, 'GET', `/deployments/${id}`), await balanceOf(sandbox)];
  };
  const step = 50_000;
  expect(await live([25 * step])).toEqual(await live(new Array(25).fill(step)));
});

it('gives each account a team and credit of its own, and limits requests as production does', async () => {
  await using sandbox = await createSandbox({ providers: ['b'], marketplace: { credit_usd: 7 } });
  const [mine, theirs] = [await sandbox.account(), await sandbox.account()];
  await ask(sandbox, 'POST', '/deployments', cpuOffer, mine);
  expect(await ask(sandbox, 'GET', '/deployments', undefined, mine)).toHaveLength(1);
  expect(await ask(sandbox, 'GET', '/deployments', undefined, theirs)).toEqual([]);
  expect(await balanceOf(sandbox, theirs)).toBe(7);
  const askMany = async () => {
    for (let count = 0; count < 251; count++) await balanceOf(sandbox, mine);
  };
  await expect(askMany()).rejects.toThrow('429');
  await sandbox.clock.advance(15 * 60_000);
  expect(await balanceOf(sandbox, mine)).toBeLessThan(7);
});
