import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { ApiError } from '../contract/errors.ts';
import type { InstanceType } from '../contract/values.ts';
import type { Markups } from './markup.ts';
import type { ProviderProfile } from './profile.ts';

/** An offer as its provider last published it, with the marketplace's derived values. */
export interface CatalogOffer {
  providerId: string;
  offerId: string;
  name: string;
  description: string;
  instanceType: InstanceType;
  /** Canonical type; `CPU` without a GPU. */
  gpuType: string;
  /** The displayed model; empty for CPU. */
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
  /** The provider's current prices of a running and a stopped instance; null: not announced. */
  providerPriceMicroUsdPerHour: number;
  providerStoppedPriceMicroUsdPerHour: number | null;
  /** The current price of an instance with the markup, before discounts. For SPOT offers it is the spot price. */
  priceMicroUsdPerHour: number;
  /** Null: it is not a SPOT offer. */
  spotPriceMicroUsdPerHour: number | null;
  /** The announced price with the markup; null: not announced. Then the profile's price applies, if there is one. */
  stoppedPriceMicroUsdPerHour: number | null;
  /** The announced minimum; null: not announced. A longer one of the profile applies. */
  minimumReservationMinutes: number | null;
  announcesRestart: boolean;
  announcesVolumeResize: boolean;
  /** All regions of the offer, and those where it can be deployed now. */
  regions: readonly string[];
  inStockRegions: readonly string[];
  /** The provider's images. There may be none (O: Configuration, `os_options` is optional). */
  osOptions: readonly string[];
  supportsCloudInit: boolean;
  maintenance: boolean;
  isNvlink: boolean;
  /** The provider no longer publishes the offer. It is kept for the deployments that run on it, and not sold. */
  isWithdrawn?: boolean;
  /** The extras as the provider published them. */
  extras: Readonly<Record<string, unknown>>;
}

/** The image of an offer whose provider lists none: the provider's default "if omitted" (O: CreateInstanceRequest). */
const DEFAULT_IMAGE = 'default';

/** The values of `operatingSystem`, also shown as `os_options`. Never empty, so that the offer can be deployed. */
export function deployableImages({ osOptions }: Pick<CatalogOffer, 'osOptions'>): readonly string[] {
  return osOptions.length === 0 ? [DEFAULT_IMAGE] : osOptions;
}

/** A provider's catalog as last read. It is kept in memory, so a provider that hangs delays no request. */
export interface ProviderCatalog {
  /** When the catalog was last read; null: never, and `offers` is empty. */
  readonly refreshedAt: number | null;
  readonly offers: ReadonlyMap<string, CatalogOffer>;
  /** The provider's volume locations; empty where its profile has no volumes. */
  readonly volumeLocations: readonly {
    id: string;
    name: string;
    types: readonly string[];
    countryCode: string | null;
  }[];
}

export interface Provider {
  id: string;
  profile: ProviderProfile;
  client: OrchestratorClient;
  /** The markups on its prices. The catalog's prices already include them. */
  markups: Markups;
  catalog: ProviderCatalog;
  /** Tests the SSH login of new machines before they run; null: the provider is trusted (`verify_ssh`). */
  sshProbe: SshProbe | null;
}

/** @throws {ApiError} PROVIDER_REFUSED if the configuration no longer has the provider */
export function requireProvider(providers: Providers, { providerId }: { providerId: string }): Provider {
  const provider = providers.get(providerId);
  if (provider !== undefined) return provider;
  throw new ApiError('PROVIDER_REFUSED', `${providerId} cannot be reached from here; nothing changed.`);
}

export interface Providers {
  ids(): readonly string[];
  get(id: string): Provider | undefined;
}

/** @throws {ApiError} UNAVAILABLE, which asks the client to retry */
export function assertCatalogKnown({ profile, catalog }: Pick<Provider, 'profile' | 'catalog'>): void {
  if (catalog.refreshedAt !== null) return;
  throw new ApiError('UNAVAILABLE', `The catalog of ${profile.name} has not been read yet; try again.`);
}
