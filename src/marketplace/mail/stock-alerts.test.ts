import { expect, it } from 'vitest';
import { deployment, user, userId } from '../../../test/support/rows/marketplace-rows.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import type { CatalogOffer, Provider, Providers } from '../providers/provider.ts';
import { notifyDeployment } from './outbox.ts';
import { createStockAlerts, subscribeToStock, unsubscribeFromStock } from './stock-alerts.ts';

const wanted = { userId, providerId: 'provider-a', offerId: 'h100', region: null };

/** A marketplace with one provider and one offer, whose stock the test can set. */
async function openShop() {
  const books = await openBooks();
  const shop = { refreshedAt: 1 as number | null, inStockRegions: ['eu-1'] as string[], maintenance: false };
  const provider = {
    id: 'provider-a',
    get catalog() {
      const offer = {
        name: 'H100',
        offerId: 'h100',
        providerId: 'provider-a',
        priceMicroUsdPerHour: 1,
        ...shop,
      };
      return {
        refreshedAt: shop.refreshedAt,
        offers: new Map([['h100', offer as unknown as CatalogOffer]]),
        volumeLocations: [],
      };
    },
  } as unknown as Provider;
  const providers: Providers = {
    ids: () => ['provider-a'],
    get: (id) => (id === 'provider-a' ? provider : undefined),
  };
  const deps = { ...books.deps, providers };
  const alerts = createStockAlerts(deps);
  const mails = async () =>
    (await books.store.read.mail.list({ limit: 100 })).map(({ subject, to }) => ({ subject, to }));
  return { ...books, deps, shop, alerts, mails };
}

it('mails once each time a sold-out offer is back [mail-back-in-stock]', async () => {
  const { deps, shop, alerts, mails, clock } = await openShop();
  await subscribeToStock(deps, wanted);
  await alerts.run();
  expect(await mails()).toEqual([]);
  for (let time = 1; time <= 2; time++) {
    shop.inStockRegions = [];
    await alerts.run();
    shop.inStockRegions = ['us-1'];
    await clock.advance(60_000);
    await alerts.run();
    await alerts.run();
    expect(await mails()).toHaveLength(time);
  }
  expect((await mails())[0]).toEqual({ subject: 'Back in stock: H100', to: 'usr-1@example.com' });
});

it('notices at once that a subscribed offer is sold out, by region, and honours maintenance', async () => {
  const { deps, shop, alerts, mails } = await openShop();
  const alert = await subscribeToStock(deps, { ...wanted, region: 'us-1' });
  expect(alert.wasSoldOut).toBe(true);
  await alerts.run();
  shop.inStockRegions = ['us-1'];
  shop.maintenance = true;
  await alerts.run();
  expect(await mails()).toEqual([]);
  shop.maintenance = false;
  await alerts.run();
  expect(await mails()).toHaveLength(1);
});

it('does not mail about a provider whose catalog was never read, or to users who switched marketing off', async () => {
  const { deps, shop, alerts, mails, store } = await openShop();
  shop.inStockRegions = [];
  await subscribeToStock(deps, wanted);
  shop.inStockRegions = ['eu-1'];
  shop.refreshedAt = null;
  await alerts.run();
  expect(await mails()).toEqual([]);
  await store.transact((tx) => tx.users.update(user({ wantsMarketingMail: false })));
  shop.refreshedAt = 2;
  await alerts.run();
  expect(await mails()).toEqual([]);
  expect((await store.read.stockAlerts.list())[0]?.wasSoldOut).toBe(false);
});

it('subscribes once, and ends a subscription', async () => {
  const { deps, store } = await openShop();
  const { id } = await subscribeToStock(deps, wanted);
  expect((await subscribeToStock(deps, wanted)).id).toBe(id);
  await expect(subscribeToStock(deps, { ...wanted, providerId: 'provider-z' })).rejects.toThrow(
    /no provider/,
  );
  await expect(subscribeToStock(deps, { ...wanted, userId: 'usr-9' })).rejects.toThrow(/no user/);
  await unsubscribeFromStock(deps, id);
  expect(await store.read.stockAlerts.list()).toEqual([]);
  await expect(unsubscribeFromStock(deps, id)).rejects.toThrow(/no stock alert/);
});

it('mails that a deployment is ready or failed once, to those who opted in [mail-ready-or-failed]', async () => {
  const { deps, store, mails } = await openShop();
  const tell = (news: 'ready' | 'failed') =>
    store.transact((tx) => notifyDeployment(deps, tx, deployment(), news));
  await tell('ready');
  await tell('ready');
  await tell('failed');
  expect((await mails()).map(({ subject }) => subject).toSorted()).toEqual([
    ...['Failed: a deployment', 'Ready: a deployment'],
  ]);
  await store.transact((tx) => tx.users.update(user({ wantsDeploymentMail: false })));
  await store.transact((tx) => notifyDeployment(deps, tx, deployment({ id: 'dep-2' }), 'ready'));
  expect(await mails()).toHaveLength(2);
});

it('mails nothing while sales are paused, nor at the end of the pause', async () => {
  const { deps, shop, alerts, mails, store } = await openShop();
  await subscribeToStock(deps, wanted);
  const pause = {
    providerId: 'provider-a',
    region: '',
    offerId: '',
    reason: 'fire',
    since: 0,
    until: null,
    by: 'mara',
  };
  shop.inStockRegions = [];
  await alerts.run();
  await store.transact((tx) => tx.pauses.put(pause));
  shop.inStockRegions = ['us-1'];
  await alerts.run();
  await store.transact((tx) => tx.pauses.remove(pause));
  await alerts.run();
  expect(await mails()).toEqual([]);
  // The next return to stock is mailed, with the regions that are sold.
  shop.inStockRegions = [];
  await alerts.run();
  await store.transact((tx) => tx.pauses.put({ ...pause, region: 'us-1' }));
  shop.inStockRegions = ['us-1', 'eu-1'];
  await alerts.run();
  expect((await store.read.mail.list({ limit: 9 })).map(({ text }) => text)).toEqual([
    expect.stringContaining('deployed again, in eu-1.'),
  ]);
});
