import { berthAnswerSchema } from '../../client/answers.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { microUsdFromUsd, toOneLine } from '../../contract/values.ts';
import { ruleOf } from './capabilities.ts';
import { CPU, type GpuType, type GpuTypes } from './gpu-types.ts';
import { type Markups, markedUp, markedUpStopped } from './markup.ts';
import type { ProviderProfile } from './profile.ts';
import type { CatalogOffer } from './provider.ts';

/** A number above these limits is a mistake, and an offer with a mistake is not sold. */
const MOST = {
  price_per_hour: 100_000,
  spot_price_per_hour: 100_000,
  vcpus: 100_000,
  memory_gb: 1_000_000,
  storage_gb: 100_000_000,
  gpu_count: 100_000,
  gpu_memory_gb: 100_000,
} as const;

const MAX_TEXT = { id: 255, name: 255, description: 2000, image: 255, interconnect: 100 };
const MAX_REGIONS = 1000;
const MAX_IMAGES = 1000;
const MAX_EXTRAS_CHARACTERS = 16_384;

/** M: "images that need a GPU are not listed for CPU offers". */
const NEEDS_GPU = /cuda|rocm|nvidia/i;

/** Inputs besides the configuration. */
export interface OfferContext {
  profile: ProviderProfile;
  gpuTypes: GpuTypes;
  markups: Markups;
  /** The regions where the offer can be deployed now. */
  inStockRegions: readonly string[];
  /** Called with each value that was ignored. */
  onProblem: (message: string) => void;
}

/** Why a provider's configuration is not sold: an implausible number or id. Null: it is sold. */
export function mistakeOf(configuration: Configuration): string | null {
  const problem = problemOf(configuration);
  if (problem === null) return null;
  return `the offer ${JSON.stringify(toOneLine(configuration.id, 80))} is left out: ${problem}`;
}

/** Converts a provider's configuration to an offer of the marketplace. It must have no {@link mistakeOf}. */
export function toCatalogOffer(configuration: Configuration, context: OfferContext): CatalogOffer {
  const { profile, onProblem } = context;
  const { id: offerId, instance_type: instanceType, extras = {} } = configuration;
  const gpus = toGpus(configuration, context.gpuTypes);
  const announced = readBerthExtras(configuration, onProblem);
  return {
    providerId: profile.id,
    offerId,
    instanceType,
    name: toOneLine(configuration.name, MAX_TEXT.name) || offerId,
    description: toOneLine(configuration.description ?? '', MAX_TEXT.description),
    ...gpus,
    ...toInterconnect(extras, gpus),
    vcpus: configuration.vcpus,
    memoryGb: configuration.memory_gb,
    storageGb: configuration.storage_gb,
    ...toPrices(configuration, context.markups),
    ...toStoppedPrices(offerId, toMicroUsdOrNull(announced.stopped_price_per_hour), context.markups),
    minimumReservationMinutes: announced.minimum_reservation_minutes ?? null,
    announcesRestart: announced.restart ?? false,
    announcesVolumeResize: announced.volume_resize ?? false,
    regions: distinct([...configuration.regions, ...context.inStockRegions]),
    inStockRegions: distinct(context.inStockRegions),
    osOptions: toImages(configuration.os_options ?? [], gpus.gpuCount),
    supportsCloudInit: configuration.supports_cloud_init,
    maintenance: configuration.maintenance ?? false,
    isNvlink: ruleOf(profile, 'nvlink', { offerId, instanceType }, null) !== null,
    extras: JSON.stringify(extras).length > MAX_EXTRAS_CHARACTERS ? {} : extras,
  };
}

function problemOf(configuration: Configuration): string | null {
  if (configuration.id.length > MAX_TEXT.id) return `its id has more than ${MAX_TEXT.id} characters`;
  if (configuration.regions.length > MAX_REGIONS) return `it has more than ${MAX_REGIONS} regions`;
  for (const [field, most] of Object.entries(MOST)) {
    const value = configuration[field as keyof typeof MOST];
    if (value !== undefined && !(value >= 0 && value <= most)) return `${field} is not from 0 to ${most}`;
  }
  return null;
}

function toGpus(configuration: Configuration, gpuTypes: GpuTypes) {
  const { gpu_count: reported, gpu_type: name = '', gpu_memory_gb: memory = 0 } = configuration;
  const gpuCount = reported ?? (name === '' ? 0 : 1);
  return gpuCount === 0
    ? { ...CPU, gpuCount, gpuMemoryGb: 0 }
    : { ...gpuTypes.named(name), gpuCount, gpuMemoryGb: memory };
}

/** The interconnect that the provider reports, if any; else the GPU's usual one. */
function toInterconnect(extras: Record<string, unknown>, gpu: GpuType & { gpuCount: number }) {
  const reported = extras['interconnect'];
  if (gpu.gpuCount === 0 || typeof reported !== 'string' || reported.trim() === '') return {};
  const interconnectType = toOneLine(reported, MAX_TEXT.interconnect);
  return interconnectType === gpu.interconnectType
    ? {}
    : { interconnectType, interconnectDescription: interconnectType };
}

/** M: "`price`: for SPOT offers equals `spot_price`"; O: `price_per_hour` is the price on demand. */
function toPrices(
  { id, instance_type, price_per_hour, spot_price_per_hour }: Configuration,
  markups: Markups,
) {
  const isSpot = instance_type === 'SPOT';
  const providerPrice = microUsdFromUsd(isSpot ? (spot_price_per_hour ?? price_per_hour) : price_per_hour);
  const price = markedUp(providerPrice, markups, id);
  return {
    providerPriceMicroUsdPerHour: providerPrice,
    priceMicroUsdPerHour: price,
    spotPriceMicroUsdPerHour: isSpot ? price : null,
  };
}

function toStoppedPrices(offerId: string, providerPrice: number | null, markups: Markups) {
  return {
    providerStoppedPriceMicroUsdPerHour: providerPrice,
    stoppedPriceMicroUsdPerHour:
      providerPrice === null ? null : markedUpStopped(providerPrice, markups, offerId),
  };
}

function toMicroUsdOrNull(usd: number | undefined): number | null {
  return usd === undefined || usd > MOST.price_per_hour ? null : microUsdFromUsd(usd);
}

/** The provider's announcements beyond O:. Values that do not match the schema are ignored. */
function readBerthExtras({ id, extras }: Configuration, onProblem: OfferContext['onProblem']) {
  const result = berthAnswerSchema.safeParse(extras?.['berth'] ?? {});
  if (result.success) return result.data;
  onProblem(
    `extras.berth of the offer ${JSON.stringify(toOneLine(id, 80))} is ignored: it does not fit its schema`,
  );
  return {};
}

function toImages(images: readonly string[], gpuCount: number): string[] {
  const short = images.filter((image) => image.length <= MAX_TEXT.image).slice(0, MAX_IMAGES);
  return distinct(gpuCount === 0 ? short.filter((image) => !NEEDS_GPU.test(image)) : short);
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)];
}
