import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import { OperatorError } from '../operator-error.ts';
import type { StockAlertRecord } from '../records/people.ts';
import { stockOf } from './stock-of.ts';

/**
 * Subscribes a user to a configuration: they are mailed once each time that it returns to stock. Asking twice is asking
 * once.
 *
 * @throws {OperatorError}
 */
export async function subscribeToStock(
  { store, clock, random, providers }: Pick<Deps, 'store' | 'clock' | 'random' | 'providers'>,
  wanted: Pick<StockAlertRecord, 'userId' | 'providerId' | 'offerId' | 'region'>,
): Promise<StockAlertRecord> {
  const { userId, providerId, offerId, region } = wanted;
  if (providers.get(providerId) === undefined)
    throw new OperatorError(`There is no provider "${providerId}": there are ${providers.ids().join(', ')}.`);
  return store.transact(async (tx) => {
    // Locks the user, so that two at once do not both add one.
    if ((await tx.users.byId(userId)) === null)
      throw new OperatorError(`There is no user "${userId}": see \`berth marketplace users list\`.`);
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
