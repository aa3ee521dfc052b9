import { ApiError } from '../../contract/errors.ts';
import type { UnavailableReason } from '../../contract/extensions.ts';
import type { Transaction } from '../model/store.ts';
import { type Stock, sellableUnits, unavailableReason, type Wanted } from './deployable.ts';

/**
 * Takes a unit of the offer for an instance.
 *
 * @throws {ApiError} `capacity_unavailable` if none is free; `details.reason` says why
 */
export async function claimUnit(
  tx: Transaction,
  stock: Stock,
  { instanceId, ...wanted }: Wanted & { instanceId: string },
): Promise<void> {
  const { offer, region } = wanted;
  const claim = { instanceId, offerId: offer.id, region };
  if (await tx.claims.take({ ...claim, capacity: sellableUnits(stock, wanted) })) return;
  const use = await tx.claims.use();
  const claimed = use.find((one) => one.offerId === offer.id && one.region === region)?.claimed ?? 0;
  throw noCapacity(offer, region, unavailableReason(stock, wanted, claimed));
}

const texts: Record<UnavailableReason, string> = {
  sold_out: 'has no free capacity',
  platform_silent: 'cannot be placed (its platform or some of its hosts do not answer)',
  maintenance: 'is under maintenance',
  withheld: 'is not sold',
};

/** O: the 409 of a create or a start. */
export function noCapacity(
  { id, name }: { id: string; name: string },
  region: string,
  reason: UnavailableReason,
): ApiError {
  return new ApiError(
    'capacity_unavailable',
    `${name} ${texts[reason]} in ${region} now; see /availability.`,
    { details: { configuration_id: id, region, reason } },
  );
}
