import { expect, it } from 'vitest';
import { PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startTestMarketplace } from '../../../test/support/marketplace.ts';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';

const MINUTE_MS = 60_000;

it('keeps deployments and volumes of a provider that was removed from the configuration: reported, not billed, terminated, cleaned up later', async () => {
  const clock = new VirtualClock();
  const store = await openTestMarketStore();
  const gone = new PlainProvider(clock);
  const providers = { 'provider-d': { client: gone.client } };
  const others = { 'provider-e': { client: new PlainProvider(clock).client } };
  let key = '';
  let id = '';
  {
    await using market = await startTestMarketplace({ clock, store, providers });
    key = market.user.key;
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
  }
  // So that the deployment can be terminated at once.
  const options = { minimumRuntimeMinutes: 0 };
  const seen = await store.read.deployments.byId(id);
  expect(seen).toMatchObject({ status: 'running' });
  const logged: { fields: object; message: string }[] = [];
  const error = (fields: object, message: string) => void logged.push({ fields, message });
  const log = { debug() {}, info() {}, warn() {}, error };
  {
    await using market = await startTestMarketplace({
      clock,
      store,
      providers: others,
      options,
      log,
      email: 'second@example.com',
    });
    expect(logged).toMatchObject([{ fields: { provider: 'provider-d', deployments: 1, volumes: 0 } }]);
    await clock.advance(10 * MINUTE_MS);
    const { body } = await market.request('GET', `/api/deployments/${id}`, { key });
    expect(body).toMatchObject({ status: 'running', supportsPause: false });
    const { status } = await market.request('DELETE', `/api/deployments/${id}`, { key });
    expect(status).toBe(200);
    const ended = await store.read.deployments.byId(id);
    expect(ended).toMatchObject({ status: 'terminated', stoppedAt: seen?.observedAt, cleanup: 'wanted' });
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
