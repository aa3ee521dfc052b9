import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { ApiError } from '../contract/errors.ts';
import type { InstanceType } from '../contract/values.ts';
import type { Markups } from './markup.ts';
import type { ProviderProfile } from './profile.ts';

/** An offer as its provider published it last, with what was made of it. */
export interface CatalogOffer {
  providerId: string;
  offerId: string;
  name: string;
  description: string;
  instanceType: InstanceType;
  /** Canonical: `CPU` where there is no GPU. */
  gpuType: string;
  /** As it is shown; empty for CPU. */
  gpuModel: string;
  baseGpuType: string;
  displayName: string;
  interconnectType: string;
  interconnectDescription: string;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  gpuCount: number;
  gpuMemoryGb: number;
  /** What the provider asks for a running and for a stopped instance now; null: it does not tell. */
  providerPriceMicroUsdPerHour: number;
  providerStoppedPriceMicroUsdPerHour: number | null;
  /** What an instance costs now, with the markup: the spot price for SPOT offers. Before discounts. */
  priceMicroUsdPerHour: number;
  /** Null: it has none. */
  spotPriceMicroUsdPerHour: number | null;
  /** Null: the provider does not tell, so its instances cannot be stopped. */
  stoppedPriceMicroUsdPerHour: number | null;
  /** What it announces, and what its profile says; null: neither does. */
  minimumReservationMinutes: number | null;
  announcesRestart: boolean;
  announcesVolumeResize: boolean;
  /** All that it is ever offered in, and those where it can be deployed now. */
  regions: readonly string[];
  inStockRegions: readonly string[];
  /** The images that the provider names; it may name none (O: Configuration, `os_options` is optional). */
  osOptions: readonly string[];
  supportsCloudInit: boolean;
  maintenance: boolean;
  isNvlink: boolean;
  /** The provider does not publish it any more: it is known for the deployments that run on it, and not sold. */
  isWithdrawn?: boolean;
  /** As the provider published it. */
  extras: Readonly<Record<string, unknown>>;
}

/** The one image of an offer whose provider names none: what the provider takes "if omitted" (O: CreateInstanceRequest). */
const DEFAULT_IMAGE = 'default';

/** What `operatingSystem` may be for an offer, and what its `os_options` show: never empty, so that it can be deployed. */
export function deployableImages({ osOptions }: Pick<CatalogOffer, 'osOptions'>): readonly string[] {
  return osOptions.length === 0 ? [DEFAULT_IMAGE] : osOptions;
}

/** What a provider sells, as it was last read. It is kept in memory, so a provider that hangs delays no request. */
export interface ProviderCatalog {
  /** When the catalog was last read; null: never, and `offers` is empty. */
  readonly refreshedAt: number | null;
  readonly offers: ReadonlyMap<string, CatalogOffer>;
  /** Where volumes are sold, in the provider's words; empty where its profile has none. */
  readonly volumeLocations: readonly {
    id: string;
    name: string;
    types: readonly string[];
    countryCode: string | null;
  }[];
}

/** A provider of this marketplace. */
export interface Provider {
  id: string;
  profile: ProviderProfile;
  client: OrchestratorClient;
  /** What the house adds to its prices; the catalog has it in its own. */
  markups: Markups;
  catalog: ProviderCatalog;
  /** Proves that its machines can be logged in to before they run; null: the provider is believed (`verify_ssh`). */
  sshProbe: SshProbe | null;
}

/**
 * The provider of something that exists.
 *
 * @throws {ApiError} PROVIDER_REFUSED where the configuration does not have it any more
 */
export function requireProvider(providers: Providers, { providerId }: { providerId: string }): Provider {
  const provider = providers.get(providerId);
  if (provider !== undefined) return provider;
  throw new ApiError('PROVIDER_REFUSED', `${providerId} cannot be reached from here; nothing changed.`);
}

/** All of them, in the order of the configuration. */
export interface Providers {
  ids(): readonly string[];
  get(id: string): Provider | undefined;
}
