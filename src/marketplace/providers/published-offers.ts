import type { Configuration } from '../../contract/configuration.ts';
import type { AvailableConfiguration, PublishedCatalog } from '../model/catalog-record.ts';
import { mistakeOf } from './to-catalog-offer.ts';

/** Limits the memory used by a provider that keeps renaming its offers. */
const MAX_OFFERS = 5000;

/** A configuration at its current price, with the regions where it can be deployed now. */
export interface PublishedOffer {
  configuration: Configuration;
  inStockRegions: readonly string[];
}

/** The sold offers of a catalog, by id. Calls `onProblem` for each one that is left out. */
export function publishedOffers(
  { configurations, available }: Pick<PublishedCatalog, 'configurations' | 'available'>,
  onProblem: (message: string) => void,
): Map<string, PublishedOffer> {
  const availableById = byId(available);
  const offers = new Map<string, PublishedOffer>();
  for (const [id, published] of byId(configurations)) {
    if (offers.size >= MAX_OFFERS) {
      onProblem(`it publishes more than ${MAX_OFFERS} offers; the rest are left out`);
      break;
    }
    const now = availableById.get(id);
    const configuration = now === undefined ? published : withPricesOf(published, now);
    const mistake = mistakeOf(configuration);
    if (mistake !== null) onProblem(mistake);
    else offers.set(id, { configuration, inStockRegions: now?.regions ?? [] });
  }
  return offers;
}

/** Offers that are no longer sold, the latest first. They are kept for deployments that run on them. */
export function withdrawnOffers(
  before: PublishedCatalog | null,
  after: Pick<PublishedCatalog, 'configurations' | 'available'>,
): Configuration[] {
  if (before === null) return [];
  const sold = publishedOffers(after, () => undefined);
  const known = publishedOffers(before, () => undefined);
  return [...known.values()]
    .map(({ configuration }) => configuration)
    .concat(before.withdrawn)
    .filter(({ id }) => !sold.has(id))
    .slice(0, MAX_OFFERS - sold.size);
}

/** Maps by id. Of two configurations with one id, the first is used. */
function byId<C extends AvailableConfiguration>(configurations: readonly C[]): Map<string, C> {
  const first = new Map<string, C>();
  for (const configuration of configurations)
    if (!first.has(configuration.id)) first.set(configuration.id, configuration);
  return first;
}

function withPricesOf(published: Configuration, now: AvailableConfiguration): Configuration {
  const { spot_price_per_hour: _, ...rest } = published;
  return {
    ...rest,
    price_per_hour: now.price_per_hour,
    ...(now.spot_price_per_hour !== undefined && { spot_price_per_hour: now.spot_price_per_hour }),
  };
}
