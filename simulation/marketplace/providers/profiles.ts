import type { Configuration } from '../../../src/contract/configuration.ts';
import { providerProfileSchema } from '../../../src/marketplace/providers/profile.ts';

const volumes = {
  min_size_gb: 1,
  max_size_gb: 10_000,
  price_per_gb_hour: 0.000274,
  name_max_length: 60,
  max_per_instance: 3,
  shareable: true,
  attach_at_create: true,
  grow: true,
  rename: true,
};

/** `able` supports everything; `plain` neither stops nor restarts, and detaches a volume only when its instance ends. */
export const profiles = [
  providerProfileSchema.parse({
    id: 'able',
    name: 'Able',
    volumes,
    machines: [
      { instance_types: ['SPOT'], no_stop: 'Spot cannot be stopped.' },
      { deploy_timeout_minutes: 4 },
    ],
  }),
  providerProfileSchema.parse({
    id: 'plain',
    name: 'Plain',
    machines: [
      {
        no_stop: 'Plain cannot stop instances.',
        no_restart: 'Plain cannot restart instances.',
        deploy_timeout_minutes: 5,
      },
      { instance_types: ['BARE_METAL'], minimum_reservation_minutes: 5 },
    ],
    volumes: {
      ...volumes,
      shareable: false,
      attach_at_create: false,
      max_per_instance: 1,
      grow: false,
      rename: false,
      no_attach: 'Plain attaches a volume only at the create.',
      no_detach: 'Plain detaches a volume only from an ended deployment.',
    },
  }),
];

export const REGIONS = ['eu-one', 'us-two'] as const;

/** Prices at which no slice costs a whole number of micro-USD, so that every slice is rounded. */
export const configurations: readonly Configuration[] = (
  [
    ['gpu', 'DEDICATED', 1, 2.000_003],
    ['spot', 'SPOT', 1, 1.333_337],
    ['metal', 'BARE_METAL', 8, 16.999_999],
  ] as const
).map(([id, type, gpus, price]) => ({
  id,
  name: id,
  instance_type: type,
  vcpus: 8,
  memory_gb: 64,
  storage_gb: 500,
  price_per_hour: price,
  gpu_count: gpus,
  gpu_type: 'H100',
  gpu_memory_gb: 80,
  ...(type === 'SPOT' && { spot_price_per_hour: 0.777_771 }),
  available: true,
  regions: [...REGIONS],
  os_options: ['ubuntu-24.04'],
  supports_cloud_init: true,
  extras: { berth: { restart: true, volume_resize: true, stopped_price_per_hour: 0.123_457 } },
}));
