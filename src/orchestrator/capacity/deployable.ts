import { ApiError } from '../../contract/errors.ts';
import type { UnavailableReason, UnavailableRegion } from '../../contract/extensions.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Catalog, Offer } from '../catalog/catalog.ts';
import type { PlacementUse } from '../model/claims.ts';
import type { CordonRecord } from '../model/cordon.ts';
import type { Transaction } from '../model/store.ts';
import { cordonsOn } from './cordons.ts';

/** The state of the platforms' capacity, besides the claims. */
export interface Supply {
  /** Whether the platform is trusted and the claims cover all of its machines. */
  isOpen(platform: string): boolean;
  /** Units used by machines without a row, which have no claim. */
  unclaimedUnits(offerId: string, region: string): number;
  /**
   * Units that the platform itself has capacity for, including taken ones. Undefined if it sets no limit. 0 if its last
   * count began before `changedAt`, in milliseconds since the epoch.
   */
  platformUnits(offer: Offer, region: string, changedAt?: number): number | undefined;
  /** Why the platform has room for no more: hosts, then quotas. Empty if it has, or does not say. For the operator. */
  obstacles(offer: Offer, region: string): readonly string[];
  /**
   * Whether {@link platformUnits} leaves out capacity: that of silent hosts, or all of it while the platform does not
   * count.
   */
  isCountPartial(platform: string): boolean;
  /** Whether the storage claims and {@link unclaimedStorageGb} together cover the platform's volumes. */
  areStorageClaimsComplete(platform: string): boolean;
  /** GB in a region used by volumes without a row, which have no claim. */
  unclaimedStorageGb(region: string): number;
}

/** The part that concerns volumes. */
export type StorageSupply = Pick<Supply, 'areStorageClaimsComplete' | 'unclaimedStorageGb'>;

/** The supply, and the reasons not to sell it. */
export interface Stock {
  catalog: Catalog;
  supply: Supply;
  /** The cordons that are in force. */
  cordons: readonly CordonRecord[];
}

/** A wanted unit. `host`: the host of an existing machine, which can run on no other. */
export interface Wanted {
  offer: Offer;
  region: string;
  host?: string | null;
}

/** A reason not to sell an offer in a region, even if units are free. */
export type Obstacle =
  | { reason: 'platform_frozen' | 'region_drained' | 'region_maintenance' | 'offer_maintenance' }
  | { reason: 'cordoned'; cordon: CordonRecord };

/** Returns all obstacles. If there are none, free units are sold. */
export function findObstacles({ catalog, supply, cordons }: Stock, wanted: Wanted): Obstacle[] {
  const { offer } = wanted;
  const region = catalog.regions.get(wanted.region);
  return [
    ...(supply.isOpen(offer.platform) ? [] : [{ reason: 'platform_frozen' as const }]),
    ...(region?.drained ? [{ reason: 'region_drained' as const }] : []),
    ...(region?.maintenance ? [{ reason: 'region_maintenance' as const }] : []),
    ...(offer.maintenance ? [{ reason: 'offer_maintenance' as const }] : []),
    ...cordonsOn(cordons, wanted).map((cordon) => ({ reason: 'cordoned' as const, cordon })),
  ];
}

/** Units of the offer that claims may take in the region. 0 if it is not placed there, or there is an obstacle. */
function sellableUnits(stock: Stock, wanted: Wanted): number {
  const { offer, region } = wanted;
  if (!stock.catalog.regions.has(region) || findObstacles(stock, wanted).length > 0) return 0;
  const ofCatalog = unitsOfCatalog(stock, wanted);
  const ofPlatform = stock.supply.platformUnits(offer, region, lastChangeOfHosts(stock, offer));
  return Math.max(0, Math.min(ofCatalog, ofPlatform ?? ofCatalog));
}

/** When a host was last taken out of placement, or tried. A count before that includes units of the host. */
function lastChangeOfHosts({ cordons }: Stock, { platform }: Offer): number | undefined {
  const times = cordons.flatMap(({ kind, platform: of, refusals }) =>
    kind === 'host' && of === platform && refusals !== null ? [refusals.trialAt - refusals.backoffMs] : [],
  );
  return times.length === 0 ? undefined : Math.max(...times);
}

/** Units in the catalog that claims may take, without those of machines that have no row. */
function unitsOfCatalog({ supply }: Stock, { offer, region }: Wanted): number {
  const units = offer.placements.find((placement) => placement.region === region)?.units ?? 0;
  return units - supply.unclaimedUnits(offer.id, region);
}

/** Returns a function that gives the claimed and the free units of an offer in a region. */
export function freeUnits(
  stock: Stock,
  use: readonly PlacementUse[],
): (wanted: Wanted) => { claimed: number; free: number } {
  const claims = new Map(use.map(({ offerId, region, claimed }) => [`${offerId} ${region}`, claimed]));
  return (wanted) => {
    const claimed = claims.get(`${wanted.offer.id} ${wanted.region}`) ?? 0;
    return { claimed, free: Math.max(0, sellableUnits(stock, wanted) - claimed) };
  };
}

/** Whether the claims cover the storage of a region. Each platform with volumes there counts. */
export function isStorageKnown(catalog: Catalog, regionToken: string, supply: StorageSupply): boolean {
  const { volumeTypes = [] } = catalog.regions.get(regionToken) ?? {};
  return volumeTypes.every(({ platform }) => supply.areStorageClaimsComplete(platform));
}

/** GB in a region that claims of volumes may take. Null for no limit. 0 while the claims do not cover the storage. */
export function sellableStorageGb(
  catalog: Catalog,
  regionToken: string,
  supply: StorageSupply,
): number | null {
  const { storageGb } = catalog.regions.get(regionToken) ?? {};
  if (storageGb === undefined) return null;
  if (!isStorageKnown(catalog, regionToken, supply)) return 0;
  return Math.max(0, storageGb - supply.unclaimedStorageGb(regionToken));
}

/** Why an offer cannot be sold in a region. `claimed`: its units that instances hold there. */
function unavailableReason(stock: Stock, wanted: Wanted, claimed: number): UnavailableReason {
  const obstacles = findObstacles(stock, wanted);
  if (obstacles.some(isMaintenance)) return 'maintenance';
  const isFrozen = obstacles.some(({ reason }) => reason === 'platform_frozen');
  if (obstacles.length > (isFrozen ? 1 : 0)) return 'withheld';
  if (claimed >= unitsOfCatalog(stock, wanted)) return 'sold_out';
  const isSilent = isFrozen || stock.supply.isCountPartial(wanted.offer.platform);
  return isSilent ? 'platform_silent' : 'sold_out';
}

function isMaintenance(obstacle: Obstacle): boolean {
  if (obstacle.reason === 'cordoned') return obstacle.cordon.isMaintenance;
  return obstacle.reason === 'region_maintenance' || obstacle.reason === 'offer_maintenance';
}

/** The regions in which a create of an offer would find a free unit now, and why it would find none in the others. */
export interface OfferStock {
  deployable: string[];
  unavailable: UnavailableRegion[];
}

/** Returns the stock of each offer. Each placement is checked on its own, never summed up. */
export function stockOfOffers(stock: Stock, use: readonly PlacementUse[]): Map<string, OfferStock> {
  const unitsOf = freeUnits(stock, use);
  return new Map(
    [...stock.catalog.offers.values()].map((offer) => {
      const found: OfferStock = { deployable: [], unavailable: [] };
      for (const { region } of offer.placements) {
        const { claimed, free } = unitsOf({ offer, region });
        if (free > 0) found.deployable.push(region);
        else found.unavailable.push({ region, reason: unavailableReason(stock, { offer, region }, claimed) });
      }
      return [offer.id, found];
    }),
  );
}

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
  if (isLogDue(stock.supply, `${offer.id} ${region}`, clock.now())) {
    const { units = 0 } = offer.placements.find((placement) => placement.region === region) ?? {};
    const platformUnits = stock.supply.platformUnits(offer, region);
    const obstacles = stock.supply.obstacles(offer, region);
    const fields = { offer: offer.id, region, platform: offer.platform, reason };
    log.warn({ ...fields, claimed, units, platformUnits, obstacles }, REFUSED);
  }
  throw noCapacity(offer, region, reason);
}

interface Reporting {
  log: Pick<Log, 'warn'>;
  clock: Pick<Clock, 'now'>;
}

const REFUSED = 'a create or start was refused: no capacity; see the page Capacity of the console';
const LOG_EVERY_MS = 60_000;
/** When a refusal was last logged, for each offer and region of a server. */
const lastLogged = new WeakMap<Supply, Map<string, number>>();

function isLogDue(supply: Supply, placement: string, now: number): boolean {
  const times = lastLogged.get(supply) ?? new Map<string, number>();
  lastLogged.set(supply, times);
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
