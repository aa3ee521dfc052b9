import { expect, it } from 'vitest';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { deployment } from '../support/rows/marketplace-rows.ts';

const MB = 1024 * 1024;

async function withNames(market: TestMarketplace, names: readonly string[]): Promise<void> {
  const { userId, teamId } = market.user;
  await market.store.transact(async (tx) => {
    for (const [index, name] of names.entries())
      await tx.deployments.insert(
        deployment({ id: `dep-${index}`, userId, teamId, name, status: 'failed', createdAt: index }),
      );
  });
}

it('a list of long names is whole, the newest first, as a short one is [list-long-names]', async () => {
  await using market = await startTestMarketplace();
  const names = Array.from({ length: 130 }, (_, index) =>
    String(index).repeat(index % 40 === 0 ? 300_000 : 3),
  );
  await withNames(market, names);
  const { status, body } = await market.request<{ name: string }[]>('GET', '/api/deployments');
  expect(status).toBe(200);
  expect(body.map(({ name }) => name)).toEqual(names.toReversed());
  const second = await market.request<{ name: string }[]>('GET', '/api/deployments?limit=60&page=2');
  expect(second.body.map(({ name }) => name)).toEqual(names.toReversed().slice(60, 120));
  const cut = await market.request<{ name: string }[]>('GET', '/api/deployments?limit=2');
  expect(cut.body.map(({ name }) => name)).toEqual(names.toReversed().slice(0, 2));
});

it('a long list that nobody reads is made in parts, and one user has four at a time [list-long-names-unread]', async () => {
  await using market = await startTestMarketplace();
  await withNames(
    market,
    Array.from({ length: 10 }, () => 'x'.repeat(MB)),
  );
  // Through the app itself: these are left open.
  const headers = { Authorization: `Bearer ${market.user.key}` };
  const open = async () => market.marketplace.app.request('/api/deployments?limit=10', { headers });
  const held = [await open(), await open(), await open(), await open()];
  expect(held.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect((await open()).status).toBe(429);
  const reader = held[0]?.body?.getReader();
  const first = await reader?.read();
  expect(first?.value?.length).toBeLessThan(2 * MB);
  await reader?.cancel();
  for (const reply of held.slice(1)) await reply.body?.cancel();
  expect((await open()).status).toBe(200);
});
