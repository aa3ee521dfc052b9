import type { Configuration } from '../../contract/configuration.ts';
import type { AvailableConfiguration, PublishedCatalog } from '../model/catalog-record.ts';
import { mistakeOf } from './to-catalog-offer.ts';

/** A provider that renames its offers all the time must not fill the memory. */
const MAX_OFFERS = 5000;

/** A configuration at the price of now, and where it can be deployed now. */
export interface PublishedOffer {
  configuration: Configuration;
  inStockRegions: readonly string[];
}

/** What is sold of a catalog, by id; what is left out is told to `onProblem`. */
export function publishedOffers(
  { configurations, available }: Pick<PublishedCatalog, 'configurations' | 'available'>,
  onProblem: (message: string) => void,
): Map<string, PublishedOffer> {
  const availableById = byId(available);
  const offers = new Map<string, PublishedOffer>();
  for (const [id, published] of byId(configurations)) {
    if (offers.size >= MAX_OFFERS) {
      onProblem(`it publishes more than ${MAX_OFFERS} offers; the rest is left out`);
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

/** What was sold before and is not sold in `after`, the latest first: deployments that run on it know it still. */
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

/** Of two with one id the first counts. */
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
