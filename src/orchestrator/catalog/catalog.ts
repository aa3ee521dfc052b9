import type { InstanceType } from '../../contract/configuration.ts';
import type { DriverManifest } from '../model/platform-driver.ts';

export { DEFAULT_PLATFORM } from '../model/platform-resource.ts';

/** A place where machines are sold. `datacenter` is the platform's code for it and is never sent to clients. */
export interface Region {
  token: string;
  name: string;
  countryCode: string | undefined;
  datacenter: string;
  /** Whether nothing new is placed here. */
  drained: boolean;
  maintenance: boolean;
  /** Volume types sold here. Empty if the region has no volumes. */
  volumeTypes: readonly VolumeType[];
  /** GB that all volumes of the region together may take. Undefined for no limit. */
  storageGb: number | undefined;
}

export interface VolumeType {
  name: string;
  priceMicroUsdPerGbHour: number;
  minSizeGb: number;
  maxSizeGb: number;
  /** Whether several instances may have it attached at once. */
  shareable: boolean;
  /** The name of the platform that has its volumes. They attach only to instances of that platform. */
  platform: string;
}

export interface Placement {
  region: string;
  /** Units of this offer in the region, including sold ones. */
  units: number;
}

export interface Offer {
  id: string;
  /** The platform that has its machines, by its name in berth.yaml. */
  platform: string;
  /**
   * How the platform makes the machines: host group, image, flavour, port pool. The driver's `offerSchema` parses it.
   */
  machine: Readonly<Record<string, unknown>>;
  name: string;
  description: string | undefined;
  instanceType: InstanceType;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  gpuCount: number | undefined;
  gpuType: string | undefined;
  gpuMemoryGb: number | undefined;
  priceMicroUsdPerHour: number;
  spotPriceMicroUsdPerHour: number | undefined;
  placements: readonly Placement[];
  /** The first is the default. */
  osOptions: readonly string[];
  supportsCloudInit: boolean;
  maintenance: boolean;
  /** The root disk sizes that a create may request. Undefined if the size is fixed at `storageGb`. */
  rootDisk: { minGb: number; maxGb: number } | undefined;
  /** Whether a stopped instance keeps its unit. */
  onStop: 'release' | 'hold';
  /** Whether a stopped instance can be started again (O: Instances, rule 4). */
  resumable: boolean;
  /** Whether an ONLINE instance can be restarted, if the platform supports it. */
  restartable: boolean;
  /**
   * The price of a stopped instance. Undefined if it is not stated. Berth announces it; the billing system charges it.
   */
  stoppedPriceMicroUsdPerHour: number | undefined;
  /** The shortest rental. Undefined if it is not stated. */
  minimumReservationMinutes: number | undefined;
  /** How long a create or a start may take to reach ONLINE (O: Limits; longer for bare metal). */
  onlineWithinMs: number;
  extras: Readonly<Record<string, unknown>> | undefined;
}

/** The offers and regions of this provider. A reload replaces both maps together, so read them at each use. */
export interface Catalog {
  regions: ReadonlyMap<string, Region>;
  offers: ReadonlyMap<string, Offer>;
}

/** The catalog with only the offers of one platform. It follows reloads. */
export function catalogOf(catalog: Catalog, platform: string): Catalog {
  let all: Catalog['offers'] | undefined;
  let own: Catalog['offers'] = new Map();
  return {
    get regions() {
      return catalog.regions;
    },
    get offers() {
      if (catalog.offers !== all)
        own = new Map([...catalog.offers].filter(([, offer]) => offer.platform === platform));
      all = catalog.offers;
      return own;
    },
  };
}

/** The current price of an instance of the offer: the spot price for SPOT offers. */
export function effectivePriceMicroUsdPerHour(offer: Offer): number {
  return offer.instanceType === 'SPOT'
    ? (offer.spotPriceMicroUsdPerHour ?? offer.priceMicroUsdPerHour)
    : offer.priceMicroUsdPerHour;
}

/** Whether a create of the offer may have `cloud_init` on this platform. */
export function canCloudInit(manifest: DriverManifest, offer: Offer): boolean {
  return offer.supportsCloudInit && manifest.cloudInitBytes > 0;
}

/** Whether machines of the offer or instance can be restarted on this platform. */
export function canRestart(
  manifest: DriverManifest,
  { restartable = true }: { restartable?: boolean },
): boolean {
  return manifest.restart && restartable;
}
