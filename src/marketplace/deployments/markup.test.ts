import { afterEach, beforeEach, expect, it } from 'vitest';
import { PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace } from '../../../test/support/marketplace.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { assignDiscount } from '../discounts/discounts.ts';
import { explainBill, readBill } from '../ledger/explain-bill.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';
import type { Markups } from '../providers/markup.ts';

const MINUTE_MS = 60_000;
const markups: Markups = {
  all: { basisPoints: 1_250 },
  offers: new Map([['cpu-1', { microUsdPerHour: 30_001 }]]),
};
let clock: VirtualClock;
let plain: PlainProvider;
let market: TestMarketplace;

beforeEach(async () => {
  clock = new VirtualClock();
  plain = new PlainProvider(clock, { startMs: 5_000 });
  market = await startTestMarketplace({
    clock,
    providers: { 'provider-d': { client: plain.client, markups } },
  });
});
afterEach(() => market[Symbol.asyncDispose]());

async function ask(method: string, path: string, body?: unknown) {
  const { status, body: answer, text } = await market.request(method, path, { body });
  expect([200, 201], text).toContain(status);
  return answer as { id: string; data: { offers: Record<string, unknown>[] }[] } & Record<string, unknown>;
}

async function offers(): Promise<Map<string, Record<string, unknown>>> {
  const { data } = await ask('GET', '/api/gpu-offers?limit=100');
  return new Map(data.flatMap((row) => row.offers).map((offer) => [String(offer['offerId']), offer]));
}

const deploy = (offerId: string, gpuCount = 1) =>
  ask('POST', '/api/deployments', {
    provider: 'provider-d',
    offerId,
    gpuCount,
    region: 'eu-one',
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key: newPublicKey(),
  });
const asked = (offerId: string) =>
  plain.options.configurations?.find(({ id }) => id === offerId)?.price_per_hour ?? 2;

it('a markup is included in shown, agreed, billed and quoted prices, less the discount', async () => {
  const { deps } = market.marketplace;
  const price = asked('gpu-1');
  const marked = (usd: number) => Math.round(usd * 1_125_000) / 1_000_000;
  expect((await offers()).get('gpu-1')).toMatchObject({ price: marked(price) });
  await assignDiscount(deps, { teamId: market.user.teamId, percentage: 10 });
  const { id, hourlyRate, originalHourlyRate } = await deploy('gpu-1');
  expect([originalHourlyRate, hourlyRate]).toEqual([
    marked(price),
    Math.round(marked(price) * 900_000) / 1e6,
  ]);
  await clock.advance(21 * MINUTE_MS);

  const quote = await ask('GET', `/api/deployments/${id}/pause-quote`);
  const stopped = plain.configurations.find((it) => it.id === 'gpu-1')?.extras?.['berth'] as {
    stopped_price_per_hour: number;
  };
  expect(quote['originalHourlyRate']).toBe(marked(stopped.stopped_price_per_hour));
  await ask('POST', `/api/deployments/${id}/pause`);
  await clock.advance(21 * MINUTE_MS);
  const shown = await ask('DELETE', `/api/deployments/${id}`);
  expect(JSON.stringify([shown, await ask('GET', `/api/deployments/${id}`)])).not.toMatch(
    /provider_?rate|markup|margin/i,
  );

  const bill = await readBill(market.store.read, id, clock.now());
  expect(bill.segments.map((it) => [it.state, it.provider_hourly_rate_usd])).toEqual([
    ['running', price],
    ['stopped', stopped.stopped_price_per_hour],
  ]);
  expect(explainBill(bill)[0]).toMatch(/running {2}\$\d.*\(10 % off .*\(provider \$2\.00\/h\)$/);
  const { margin_usd: margin, taken_usd: taken, provider_usd: provider } = bill;
  expect(margin).toBeCloseTo((taken ?? 0) - (provider ?? 0), 6);
  expect(margin).toBeGreaterThan(0);
  expect((await verifyLedger(market.store, clock.now())).findings).toEqual([]);
});

it('a markup of an offer differs, and a fixed one is exact to the micro-dollar', async () => {
  const offer = plain.configurations.find((it) => it.id === 'cpu-1');
  const price = Math.round((offer?.price_per_hour ?? 0) * 1e6 + 30_001) / 1e6;
  expect((await offers()).get('cpu-1')).toMatchObject({ price });
});

it('a markup follows a changing spot price, and no other price', async () => {
  const { id } = await deploy('gpu-spot');
  await clock.advance(60_000);
  const read = async () => (await market.store.read.deployments.byId(id)) ?? undefined;
  const before = await read();
  expect(before?.originalRateMicroUsd).toBe(Math.round((before?.providerRateMicroUsd ?? 0) * 1.125));
  await clock.advance(10 * 60_000);
  expect((await market.store.read.ledger.segmentsOf('deployment', id)).length).toBe(1);
  plain.set(plain.instances[0]?.id ?? '', { price_per_hour: 1.6 });
  await clock.advance(60_000);
  expect(await read()).toMatchObject({
    providerRateMicroUsd: 1_600_000,
    originalRateMicroUsd: 1_800_000,
    orderedProviderRateMicroUsd: before?.providerRateMicroUsd,
  });
  const segments = await market.store.read.ledger.segmentsOf('deployment', id);
  expect(segments.map((it) => it.providerRateMicroUsdPerHour)).toEqual([
    before?.providerRateMicroUsd,
    1_600_000,
  ]);
});
