import type { Configuration } from '../../contract/configuration.ts';
import type { VolumeLocation } from '../../contract/volume.ts';

/** The catalog of a provider, as the holder of its first range last read it. */
export interface CatalogRecord {
  providerId: string;
  /** Increases whenever `published` or `problems` changes. */
  version: number;
  /** When configurations and availability were last both read, in milliseconds since the epoch; null: never. */
  readAt: number | null;
  /** Null: configurations and availability were never both read. */
  published: PublishedCatalog | null;
  /** Problems found in the last reading. */
  problems: readonly string[];
}

/** The provider's answers, without the marketplace's configuration. Each process derives its offers from them. */
export interface PublishedCatalog {
  configurations: readonly Configuration[];
  available: readonly AvailableConfiguration[];
  /** Configurations no longer published, the last withdrawn first. Deployments may still run on them. */
  withdrawn: readonly Configuration[];
  volumeLocations: readonly VolumeLocation[];
}

/** The current stock and prices. O: `/availability` is the real-time answer, and spot prices move. */
export type AvailableConfiguration = Pick<
  Configuration,
  'id' | 'regions' | 'price_per_hour' | 'spot_price_per_hour'
>;
