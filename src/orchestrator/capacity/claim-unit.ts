import { ApiError } from '../../contract/errors.ts';
import type { UnavailableReason } from '../../contract/extensions.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Transaction } from '../model/store.ts';
import { type Sale, type Stock, sellableUnits, unavailableReason, type Wanted } from './deployable.ts';

/**
 * Takes a unit of the offer for an instance. A refusal is logged once a minute for each offer and region, with the limits
 * that cause it; the client reads only the reason.
 *
 * @throws {ApiError} `capacity_unavailable` if none is free; `details.reason` says why
 */
export async function claimUnit(
  tx: Transaction,
  stock: Stock,
  { instanceId, ...wanted }: Wanted & { instanceId: string },
  { log, clock }: Reporting,
): Promise<void> {
  const { offer, region } = wanted;
  const claim = { instanceId, offerId: offer.id, region };
  if (await tx.claims.take({ ...claim, capacity: sellableUnits(stock, wanted) })) return;
  const use = await tx.claims.use();
  const claimed = use.find((one) => one.offerId === offer.id && one.region === region)?.claimed ?? 0;
  const reason = unavailableReason(stock, wanted, claimed);
  if (isLogDue(stock.platform, `${offer.id} ${region}`, clock.now())) {
    const { units = 0 } = offer.placements.find((placement) => placement.region === region) ?? {};
    const platformUnits = stock.platform.platformUnits(offer, region);
    const obstacles = stock.platform.obstacles(offer, region);
    const fields = { offer: offer.id, region, platform: offer.platform, reason };
    log.warn({ ...fields, claimed, units, platformUnits, obstacles }, REFUSED);
  }
  throw noCapacity(offer, region, reason);
}

interface Reporting {
  log: Pick<Log, 'warn'>;
  clock: Pick<Clock, 'now'>;
}

const REFUSED = 'a create or start was refused: no capacity; see `berth capacity --ask`';
const LOG_EVERY_MS = 60_000;
/** When a refusal was last logged, for each offer and region of a server. */
const lastLogged = new WeakMap<Sale, Map<string, number>>();

function isLogDue(sale: Sale, placement: string, now: number): boolean {
  const times = lastLogged.get(sale) ?? new Map<string, number>();
  lastLogged.set(sale, times);
  if (Math.abs(now - (times.get(placement) ?? Number.NEGATIVE_INFINITY)) < LOG_EVERY_MS) return false;
  times.set(placement, now);
  return true;
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
