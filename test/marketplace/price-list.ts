import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../src/config/package-root.ts';

/** An offer of a provider's price list. */
export interface ListedOffer {
  provider: string;
  offerId: string;
  instanceType: 'DEDICATED' | 'SPOT' | 'CLUSTER' | 'BARE_METAL';
  gpuCount: number;
  regions: string[];
  image: string;
  /** Micro-USD per hour, as it is paid at first. */
  price: bigint;
  /** While it is stopped; null: it cannot be. */
  stoppedPrice: bigint | null;
}

interface OfferFile {
  id: string;
  instance_type: ListedOffer['instanceType'];
  gpu_count?: number;
  capacity: Record<string, number>;
  os_options: string[];
  price_per_hour: number;
  spot_price_per_hour?: number;
  stopped_price_per_hour?: number;
}

/** What a provider asks, from its catalog as it is written. */
export function offersOf(provider: string): ListedOffer[] {
  const { offers } = read<{ offers: OfferFile[] }>('catalogs', provider);
  return offers.map((offer) => ({
    provider,
    offerId: offer.id,
    instanceType: offer.instance_type,
    gpuCount: offer.gpu_count ?? 0,
    regions: Object.keys(offer.capacity),
    image: offer.os_options[0] ?? '',
    price: toMicroUsd(offer.spot_price_per_hour ?? offer.price_per_hour),
    stoppedPrice:
      offer.stopped_price_per_hour === undefined ? null : toMicroUsd(offer.stopped_price_per_hour),
  }));
}

interface VolumesFile {
  price_per_gb_hour: number;
  regions?: Record<
    string,
    { price_per_gb_hour?: number; clouds?: { id: string; price_per_gb_hour?: number }[] }
  >;
}

/** Micro-USD per hour of a volume, before discounts. */
export function volumePrice(provider: string, region: string, sizeGb: number, cloudId?: string): bigint {
  const { volumes } = read<{ volumes: VolumesFile | null }>('providers', provider);
  if (volumes === null) throw new Error(`${provider} has no volumes`);
  const place = volumes.regions?.[region];
  const cloud = place?.clouds?.find(({ id }) => id === cloudId);
  const perGb = cloud?.price_per_gb_hour ?? place?.price_per_gb_hour ?? volumes.price_per_gb_hour;
  return toMicroUsd(perGb) * BigInt(sizeGb);
}

/** Of a price in dollars with at most six decimals. */
export function toMicroUsd(usd: number): bigint {
  return BigInt(Math.round(usd * 1_000_000));
}

const files = new Map<string, unknown>();

function read<T>(folder: 'catalogs' | 'providers', id: string): T {
  const path = join(packageRoot(), 'fixtures', folder, `${id}.yaml`);
  if (!files.has(path)) files.set(path, parse(readFileSync(path, 'utf8')));
  return files.get(path) as T;
}
