import { microUsdFromUsd, usdFromMicroUsd } from '../../contract/values.ts';
import type { Offer } from '../contract/offer.ts';
import { discounted } from '../discounts/discounted.ts';

/** M: "Authenticated requests also get per-offer: `originalPrice` …"; 0: the team has no discount now. */
export function withDiscount(offer: Offer, percentage: number): Offer {
  return {
    ...offer,
    originalPrice: offer.price,
    discountedPrice: usdFromMicroUsd(discounted(microUsdFromUsd(offer.price), percentage)),
    discountPercentage: percentage,
    hasDiscount: percentage > 0,
  };
}
