import { afterEach, beforeEach, expect, it } from 'vitest';
import { createClient } from '../../src/client/create-client.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const MINUTE_MS = 60_000;

let clock: VirtualClock;
let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
let market: TestMarketplace;
beforeEach(async () => {
  clock = new VirtualClock();
  berth = await startPlainOrchestrator(() => 'none', { clock });
  const { orchestrator } = berth;
  const client = createClient({
    baseUrl: 'http://127.0.0.1/v1',
    allowPrivate: true,
    credential: { apiKey: orchestrator.key },
    clock,
    timeoutMs: 10_000,
    fetch: (url, { method = 'GET', headers, body }) => {
      const { pathname, search } = new URL(url);
      const request = { method, headers: headers as Record<string, string> };
      return orchestrator.fetch(pathname + search, {
        ...request,
        ...(typeof body === 'string' && { body }),
      });
    },
  });
  market = await startTestMarketplace({ clock, providers: { 'provider-d': { client } } });
});
afterEach(async () => {
  berth.setPlan(() => 'none');
  await market[Symbol.asyncDispose]();
  await berth[Symbol.asyncDispose]();
});

async function order(): Promise<string> {
  const { status, body, text } = await market.request('POST', '/api/deployments', {
    body: {
      provider: 'provider-d',
      offerId: 'h100-sxm-1x',
      gpuCount: 1,
      region: 'eu-frankfurt',
      ssh_public_key: newPublicKey(),
      operatingSystem: 'ubuntu-24.04-cuda-13.0',
    },
  });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

const read = async (id: string) => (await market.request('GET', `/api/deployments/${id}`)).body;

async function silence(): Promise<void> {
  berth.setPlan(({ method }) => (method === 'list' ? 'unknown' : 'none'));
  await clock.advance(LISTED_MS);
}

it('an accepted deployment waits for a Berth orchestrator whose platform is silent [launch-silent-berth]', async () => {
  await silence();
  const id = await order();
  await clock.advance(2 * MINUTE_MS);
  expect(await read(id)).toMatchObject({ status: 'deploying' });
  berth.setPlan(() => 'none');
  await clock.advance(2 * MINUTE_MS);
  expect(await read(id)).toMatchObject({ status: 'running' });
  expect(berth.platform.machines.size).toBe(1);
});

it('and fails as late where the platform stays silent', async () => {
  await silence();
  const id = await order();
  await clock.advance(20 * MINUTE_MS);
  expect(await read(id)).toMatchObject({
    status: 'failed',
    failureReason: 'provisioning_timeout',
    failureDetails: expect.stringMatching(
      /^provider-d could not take the order within \d+ minutes; no machine/,
    ),
  });
  expect(berth.platform.machines.size).toBe(0);
});

it('and fails at once where all units are taken', async () => {
  for (let units = 0; units < 3; units++)
    await berth.create({ configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' });
  const id = await order();
  await clock.advance(1_000);
  expect(await read(id)).toMatchObject({ status: 'failed', failureReason: 'out_of_stock' });
});
