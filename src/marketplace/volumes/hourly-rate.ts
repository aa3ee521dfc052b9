import { microUsdFromUsd } from '../../contract/values.ts';
import type { VolumeProfile } from '../providers/profile.ts';

interface Where {
  region: string;
  cloudId?: string | null | undefined;
}

/** Micro-USD per GB and hour, before discounts. What is nearest counts: the cloud's, the region's, the provider's. */
export function ratePerGb(profile: VolumeProfile, { region, cloudId }: Where): number {
  const own = profile.regions[region];
  const cloud = own?.clouds?.find(({ id }) => id === cloudId);
  return microUsdFromUsd(cloud?.price_per_gb_hour ?? own?.price_per_gb_hour ?? profile.price_per_gb_hour);
}

/** Micro-USD per hour of a whole volume, before discounts. */
export function hourlyRate(profile: VolumeProfile, { sizeGb, ...where }: Where & { sizeGb: number }): number {
  return Math.round(ratePerGb(profile, where) * sizeGb);
}
