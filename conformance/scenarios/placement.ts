import { isObject, type JsonObject, numberField, stringField, stringsField } from '../text/json.ts';

/** An offer and the region to buy it in. */
export interface Placement {
  offer: JsonObject;
  configurationId: string;
  region: string;
  /** USD; undefined if the offer has no price. */
  pricePerHour: number | undefined;
}

/** The offer and region that the user asked for. */
export interface Wanted {
  offer?: string | undefined;
  region?: string | undefined;
}

/** Every available (offer, region), cheapest first. */
export function placements(availability: readonly unknown[], wanted: Wanted = {}): Placement[] {
  const all = availability.filter(isObject).flatMap((offer) => {
    const configurationId = stringField(offer, 'id');
    if (configurationId === undefined || offer['available'] !== true) return [];
    const pricePerHour = priceOf(offer);
    return stringsField(offer, 'regions').map((region) => ({ offer, configurationId, region, pricePerHour }));
  });
  return all
    .filter(
      ({ configurationId, region }) => fits(configurationId, wanted.offer) && fits(region, wanted.region),
    )
    .toSorted(
      (a, b) => (a.pricePerHour ?? Number.POSITIVE_INFINITY) - (b.pricePerHour ?? Number.POSITIVE_INFINITY),
    );
}

/** The cheapest placement in another region. Undefined if there is none, or the user named one region. */
export function elsewhereOf(
  choices: readonly Placement[],
  region: string | undefined,
  wanted: Wanted,
): Placement | undefined {
  if (region === undefined || wanted.region !== undefined) return undefined;
  return choices.find((choice) => choice.region !== region);
}

function fits(value: string, wanted: string | undefined): boolean {
  return wanted === undefined || value === wanted;
}

/** The highest price of the offer that may be billed. */
function priceOf(offer: JsonObject): number | undefined {
  const onDemand = usable(numberField(offer, 'price_per_hour'));
  const spot = usable(numberField(offer, 'spot_price_per_hour'));
  return onDemand === undefined ? spot : Math.max(onDemand, spot ?? 0);
}

/** Ignores negative prices, which would raise the cost cap. */
function usable(price: number | undefined): number | undefined {
  return price !== undefined && price >= 0 ? price : undefined;
}
