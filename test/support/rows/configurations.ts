import type { Configuration } from '../../../src/contract/configuration.ts';

/** Offers of the regions `eu-one` and `us-two`: `gpu-1` DEDICATED, `gpu-spot` SPOT, `metal-1` BARE_METAL, `cpu-1`. */
export const plainConfigurations: readonly Configuration[] = (
  [
    ['gpu-1', 'DEDICATED', 1, 2],
    ['gpu-spot', 'SPOT', 1, 2],
    ['metal-1', 'BARE_METAL', 8, 16],
    ['cpu-1', 'DEDICATED', 0, 0.2],
  ] as const
).map(([id, type, gpus, price]) => ({
  id,
  name: id,
  instance_type: type,
  vcpus: 8,
  memory_gb: 64,
  storage_gb: 500,
  price_per_hour: price,
  ...(gpus > 0 && { gpu_count: gpus, gpu_type: 'H100', gpu_memory_gb: 80 }),
  ...(type === 'SPOT' && { spot_price_per_hour: price / 2 }),
  ...{
    available: true,
    regions: ['eu-one', 'us-two'],
    os_options: ['ubuntu-24.04'],
    supports_cloud_init: true,
  },
  extras: { berth: { restart: true, volume_resize: true, stopped_price_per_hour: price / 4 } },
}));
