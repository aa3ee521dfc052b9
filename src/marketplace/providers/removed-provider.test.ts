import { expect, it } from 'vitest';
import { PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startTestMarketplace } from '../../../test/support/marketplace.ts';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';

const MINUTE_MS = 60_000;

it('reports the machine of an ended deployment at a provider that was removed, and cleans it up once it is back', async () => {
  const clock = new VirtualClock();
  const store = await openTestMarketStore();
  const gone = new PlainProvider(clock);
  const providers = { 'provider-d': { client: gone.client } };
  const others = { 'provider-e': { client: new PlainProvider(clock).client } };
  let id = '';
  {
    const options = { minimumRuntimeMinutes: 0 };
    await using market = await startTestMarketplace({ clock, store, providers, options });
    const { body } = await market.request('POST', '/api/deployments', {
      body: {
        provider: 'provider-d',
        offerId: 'gpu-1',
        gpuCount: 1,
        region: 'eu-one',
        operatingSystem: 'ubuntu-24.04',
        instanceType: 'DEDICATED',
        ssh_public_key: newPublicKey(),
      },
    });
    id = String(body['id']);
    await clock.advance(3 * MINUTE_MS);
    await market.marketplace.workers.stop();
    expect((await market.request('DELETE', `/api/deployments/${id}`)).status).toBe(200);
  }
  expect(await store.read.deployments.byId(id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
  const logged: { fields: object; message: string }[] = [];
  const error = (fields: object, message: string) => void logged.push({ fields, message });
  const log = { debug() {}, info() {}, warn() {}, error };
  {
    await using _ = await startTestMarketplace({
      clock,
      store,
      providers: others,
      log,
      email: 'second@example.com',
    });
    expect(logged).toMatchObject([{ fields: { provider: 'provider-d', deployments: 1 } }]);
    await clock.advance(10 * MINUTE_MS);
    expect(gone.instances).toHaveLength(1);
  }
  {
    await using _ = await startTestMarketplace({ clock, store, providers, email: 'third@example.com' });
    await clock.advance(MINUTE_MS);
    expect(gone.instances).toEqual([]);
    expect(await store.read.deployments.byId(id)).toMatchObject({ cleanup: 'done' });
  }
  expect((await verifyLedger(store, clock.now())).findings).toEqual([]);
});
