import { afterEach, beforeEach, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';
import { clientOf } from './berth-client.ts';

const MINUTE_MS = 60_000;

let clock: VirtualClock;
let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
let market: TestMarketplace;
beforeEach(async () => {
  clock = new VirtualClock();
  berth = await startPlainOrchestrator(() => 'none', { clock });
  const client = clientOf(berth.orchestrator, clock);
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

it('an accepted deployment waits for a Berth orchestrator whose platform is silent [launch-silent-berth]', async () => {
  berth.setPlan(({ method }) => (method === 'list' ? 'unknown' : 'none'));
  await clock.advance(LISTED_MS);
  const id = await order();
  await clock.advance(2 * MINUTE_MS);
  expect(await read(id)).toMatchObject({ status: 'deploying' });
  berth.setPlan(() => 'none');
  await clock.advance(2 * MINUTE_MS);
  expect(await read(id)).toMatchObject({ status: 'running' });
  expect(berth.platform.machines.size).toBe(1);
});
