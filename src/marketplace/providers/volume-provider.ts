import { microUsdFromUsd } from '../../contract/values.ts';
import { ApiError, invalid } from '../contract/errors.ts';
import type { VolumeProfile } from './profile.ts';
import { type Provider, type Providers, requireProvider } from './provider.ts';

/** A provider with volumes, and its rules for them. */
export interface VolumeProvider {
  provider: Provider;
  profile: VolumeProfile;
}

export function toVolumeProvider(provider: Provider | undefined): VolumeProvider | null {
  const profile = provider?.profile.volumes ?? null;
  return provider === undefined || profile === null ? null : { provider, profile };
}

/** M: Errors, 400: "unknown volume provider". @throws {ApiError} VALIDATION_ERROR */
export function requestedVolumeProvider(providers: Providers, id: string): VolumeProvider {
  const volumeProvider = toVolumeProvider(providers.get(id));
  if (volumeProvider !== null) return volumeProvider;
  const known = providers.ids().filter((other) => toVolumeProvider(providers.get(other)) !== null);
  throw invalid('provider', `expected a provider with volumes: ${known.join(', ') || 'none is configured'}`);
}

/** The provider of an existing volume; null: it is no longer configured. */
export function volumeProviderOf(providers: Providers, providerId: string): VolumeProvider | null {
  return toVolumeProvider(providers.get(providerId));
}

/** @throws {ApiError} PROVIDER_REFUSED if the configuration no longer has the provider */
export function requireVolumeProvider(
  providers: Providers,
  { providerId }: { providerId: string },
): VolumeProvider {
  const volumeProvider = toVolumeProvider(requireProvider(providers, { providerId }));
  if (volumeProvider !== null) return volumeProvider;
  throw new ApiError('PROVIDER_REFUSED', `${providerId} no longer offers volumes; nothing changed.`);
}

interface Where {
  region: string;
  cloudId?: string | null | undefined;
}

/** Whether requests must name a cloud of their region. */
export function hasClouds({ regions }: VolumeProfile): boolean {
  return Object.values(regions).some(({ clouds }) => clouds !== undefined);
}

/** The rate in micro-USD per GB and hour, before discounts: the cloud's, else the region's, else the provider's. */
export function ratePerGb(profile: VolumeProfile, { region, cloudId }: Where): number {
  const own = profile.regions[region];
  const cloud = own?.clouds?.find(({ id }) => id === cloudId);
  return microUsdFromUsd(cloud?.price_per_gb_hour ?? own?.price_per_gb_hour ?? profile.price_per_gb_hour);
}

/** The rate of a whole volume in micro-USD per hour, before discounts. */
export function hourlyRate(profile: VolumeProfile, { sizeGb, ...where }: Where & { sizeGb: number }): number {
  return Math.round(ratePerGb(profile, where) * sizeGb);
}
