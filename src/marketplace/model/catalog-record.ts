import type { Configuration } from '../../contract/configuration.ts';
import type { VolumeLocation } from '../../contract/volume.ts';

/** What a provider sells, as the holder of its first range read it last. */
export interface CatalogRecord {
  providerId: string;
  /** Grows whenever `published` or `problems` changes. */
  version: number;
  /** When all of it was last read, in milliseconds since the epoch; null: never. */
  readAt: number | null;
  /** Null: it was never read as a whole. */
  published: PublishedCatalog | null;
  /** What was wrong with the last reading. */
  problems: readonly string[];
}

/** The provider's answers, without the marketplace's configuration: each process makes its offers of them. */
export interface PublishedCatalog {
  configurations: readonly Configuration[];
  available: readonly AvailableConfiguration[];
  /** What it published before and does not publish any more, the latest first: deployments may run on it. */
  withdrawn: readonly Configuration[];
  volumeLocations: readonly VolumeLocation[];
}

/** O: `/availability` is the real-time answer, and spot prices move. */
export type AvailableConfiguration = Pick<
  Configuration,
  'id' | 'regions' | 'price_per_hour' | 'spot_price_per_hour'
>;
