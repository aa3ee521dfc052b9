import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import { newId } from '../model/names.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { StockAlertRecord } from '../model/people.ts';
import { pauseOf, pausesNow, type SalesPause } from '../model/sales-pause.ts';
import type { Store } from '../model/store.ts';
import type { CatalogOffer, Providers } from '../providers/provider.ts';
import { backInStockMessage } from './messages.ts';
import { queueMail } from './outbox.ts';

const EVERY_MS = 60_000;

type AlertDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'providers'>;

/** The job that mails subscribers when a sold-out configuration can be deployed again (M: Events). */
export function createStockAlerts(deps: AlertDeps): LeasedJob<Store> {
  const work = (store: Store) => mailAlerts({ ...deps, store });
  return leasedJob(deps, { name: 'stock-alerts', everyMs: EVERY_MS, work });
}

async function mailAlerts(deps: AlertDeps): Promise<void> {
  const pauses = await pausesNow(deps.store.read, deps.clock.now());
  for (const alert of await deps.store.read.stockAlerts.list()) {
    const stock = stockOf(deps.providers, alert);
    const isNews = stock !== null && (stock.regions.length === 0 ? !alert.wasSoldOut : alert.wasSoldOut);
    if (isNews) await notify(deps, alert.id, stock, pauses);
  }
}

/** A return to stock while sales are paused is noted without a mail, so that the end of the pause sends none either. */
async function notify(
  deps: AlertDeps,
  alertId: string,
  { offer, regions }: Stock,
  pauses: readonly SalesPause[],
): Promise<void> {
  const sold = regions.filter(
    (region) => offer === null || pauseOf(pauses, { ...offer, region }) === undefined,
  );
  await deps.store.transact(async (tx) => {
    const alert = await tx.stockAlerts.byId(alertId);
    const isSoldOut = regions.length === 0;
    if (alert === null || alert.wasSoldOut === isSoldOut) return;
    await tx.stockAlerts.update({ ...alert, wasSoldOut: isSoldOut });
    const user = await tx.users.byId(alert.userId);
    if (sold.length === 0 || offer === null || user === null) return;
    await queueMail(deps, tx, user, {
      class: 'marketing',
      kind: 'back_in_stock',
      dedupeKey: `back_in_stock:${alert.id}:${deps.clock.now()}`,
      ...backInStockMessage(offer, sold),
    });
  });
}

export interface Stock {
  /** Null: the offer is not sold now. */
  offer: CatalogOffer | null;
  /** The regions of the alert where the offer can be deployed now. Empty: it is sold out. */
  regions: readonly string[];
}

/** The stock for an alert; null: the provider's catalog has not been read. */
function stockOf(
  providers: Providers,
  { providerId, offerId, region }: Pick<StockAlertRecord, 'providerId' | 'offerId' | 'region'>,
): Stock | null {
  const catalog = providers.get(providerId)?.catalog;
  if (catalog === undefined || catalog.refreshedAt === null) return null;
  const offer = catalog.offers.get(offerId) ?? null;
  if (offer === null || offer.maintenance) return { offer, regions: [] };
  return { offer, regions: offer.inStockRegions.filter((name) => region === null || name === region) };
}

/** Subscribes a user to a mail each time the configuration returns to stock. Idempotent. @throws {OperatorError} */
export async function subscribeToStock(
  { store, clock, random, providers }: Pick<Deps, 'store' | 'clock' | 'random' | 'providers'>,
  wanted: Pick<StockAlertRecord, 'userId' | 'providerId' | 'offerId' | 'region'>,
): Promise<StockAlertRecord> {
  const { userId, providerId, offerId, region } = wanted;
  if (providers.get(providerId) === undefined)
    throw new OperatorError(
      `There is no provider "${providerId}": use one of ${providers.ids().join(', ')}.`,
    );
  return store.transact(async (tx) => {
    // Locks the user, so that two concurrent calls do not both add an alert.
    if ((await tx.users.byId(userId)) === null)
      throw new OperatorError(
        `There is no user "${userId}": see \`berth marketplace users ls\`.`,
        'not_found',
      );
    const known = (await tx.stockAlerts.ofUser(userId)).find(
      (alert) => alert.providerId === providerId && alert.offerId === offerId && alert.region === region,
    );
    if (known !== undefined) return known;
    const alert: StockAlertRecord = {
      id: newId(random, 'alert'),
      userId,
      providerId,
      offerId,
      region,
      createdAt: clock.now(),
      wasSoldOut: stockOf(providers, wanted)?.regions.length === 0,
    };
    await tx.stockAlerts.insert(alert);
    return alert;
  });
}

/** Ends a subscription. @throws {OperatorError} */
export async function unsubscribeFromStock({ store }: Pick<Deps, 'store'>, id: string): Promise<void> {
  await store.transact(async (tx) => {
    if ((await tx.stockAlerts.byId(id)) === null) throw new OperatorError(`There is no stock alert "${id}".`);
    await tx.stockAlerts.remove(id);
  });
}
