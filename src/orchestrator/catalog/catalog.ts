import type { InstanceType } from '../../contract/configuration.ts';
import type { DriverManifest } from '../model/platform-driver.ts';

export { DEFAULT_PLATFORM } from '../model/platform-resource.ts';

/** A place where machines are sold. `datacenter` is the platform's code for it and never leaves. */
export interface Region {
  token: string;
  name: string;
  countryCode: string | undefined;
  datacenter: string;
  /** Nothing new is placed here. */
  drained: boolean;
  maintenance: boolean;
  /** Volume types sold here; empty: the region has no volumes. */
  volumeTypes: readonly VolumeType[];
  /** GB that all volumes of the region together may take; undefined: any number. */
  storageGb: number | undefined;
}

export interface VolumeType {
  name: string;
  priceMicroUsdPerGbHour: number;
  minSizeGb: number;
  maxSizeGb: number;
  /** Whether several instances may have it attached at once. */
  shareable: boolean;
  /** The platform that has its volumes, by name: they attach to instances of the same. */
  platform: string;
}

export interface Placement {
  region: string;
  /** Units of this offer that the region holds, sold ones included. */
  units: number;
}

export interface Offer {
  id: string;
  /** The platform that has its machines, by its name in berth.yaml. */
  platform: string;
  /** How that platform makes its machines: host group, image, flavour, port pool. Its driver's `offerSchema` reads it. */
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
  /** Root disk sizes that a create may ask for; undefined: the disk is fixed at `storageGb`. */
  rootDisk: { minGb: number; maxGb: number } | undefined;
  /** What becomes of the capacity of a stopped instance. */
  onStop: 'release' | 'hold';
  /** Whether a stopped instance can be started again (O: Instances, rule 4). */
  resumable: boolean;
  /** Whether an ONLINE instance can be restarted, where the platform can. */
  restartable: boolean;
  /** What a stopped instance costs; undefined: the offer does not say. It is announced, and charged by whoever bills. */
  stoppedPriceMicroUsdPerHour: number | undefined;
  /** The shortest time for which an instance is rented out; undefined: the offer does not say. */
  minimumReservationMinutes: number | undefined;
  /** How long a create or a start may take to reach ONLINE (O: Limits; longer for bare metal). */
  onlineWithinMs: number;
  extras: Readonly<Record<string, unknown>> | undefined;
}

/** What this provider sells, and where. A reload replaces both maps at once: read them anew at each use. */
export interface Catalog {
  regions: ReadonlyMap<string, Region>;
  offers: ReadonlyMap<string, Offer>;
}

/** The catalog with the offers of one platform: as it is at each use. */
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

/** The price that an instance of the offer pays now: the spot price for SPOT offers. */
export function effectivePriceMicroUsdPerHour(offer: Offer): number {
  return offer.instanceType === 'SPOT'
    ? (offer.spotPriceMicroUsdPerHour ?? offer.priceMicroUsdPerHour)
    : offer.priceMicroUsdPerHour;
}

/** Whether a create of the offer may have `cloud_init` here. */
export function canCloudInit(manifest: DriverManifest, offer: Offer): boolean {
  return offer.supportsCloudInit && manifest.cloudInitBytes > 0;
}

/** Whether machines of such an offer or instance can be restarted here. */
export function canRestart(
  manifest: DriverManifest,
  { restartable = true }: { restartable?: boolean },
): boolean {
  return manifest.restart && restartable;
}
