import { isObject, type JsonObject, numberField, textField, textsField } from '../text/json.ts';

/** An offer and the region in which it is to be bought. */
export interface Placement {
  offer: JsonObject;
  configurationId: string;
  region: string;
  /** USD; undefined where the offer names no price. */
  pricePerHour: number | undefined;
}

/** What the user of the command asked for. */
export interface Wanted {
  offer?: string | undefined;
  region?: string | undefined;
}

/** Every (offer, region) that the availability read shows, cheapest first. */
export function placements(availability: readonly unknown[], wanted: Wanted = {}): Placement[] {
  const all = availability.filter(isObject).flatMap((offer) => {
    const configurationId = textField(offer, 'id');
    if (configurationId === undefined || offer['available'] !== true) return [];
    const pricePerHour = priceOf(offer);
    return textsField(offer, 'regions').map((region) => ({ offer, configurationId, region, pricePerHour }));
  });
  return all
    .filter(
      ({ configurationId, region }) => fits(configurationId, wanted.offer) && fits(region, wanted.region),
    )
    .toSorted(
      (a, b) => (a.pricePerHour ?? Number.POSITIVE_INFINITY) - (b.pricePerHour ?? Number.POSITIVE_INFINITY),
    );
}

function fits(value: string, wanted: string | undefined): boolean {
  return wanted === undefined || value === wanted;
}

/** The dearer of an offer's prices that an instance of it may be billed at. */
function priceOf(offer: JsonObject): number | undefined {
  const onDemand = usable(numberField(offer, 'price_per_hour'));
  const spot = usable(numberField(offer, 'spot_price_per_hour'));
  return onDemand === undefined ? spot : Math.max(onDemand, spot ?? 0);
}

/** A negative price would make room below the cap on the cost. */
function usable(price: number | undefined): number | undefined {
  return price !== undefined && price >= 0 ? price : undefined;
}
