import { readFileSync } from 'node:fs';
import type { Configuration } from '../../contract/configuration.ts';
import { type GpuTypes, parseGpuTypes } from './gpu-types.ts';
import { type ProviderProfile, providerProfileSchema } from './profile.ts';

/** The GPU types of the repository. */
export const gpuTypes: GpuTypes = parseGpuTypes(
  readFileSync(new URL('../../../fixtures/gpu-types.yaml', import.meta.url), 'utf8'),
);

/** A provider that can stop and restart all machines, besides the given rules. */
export function profileOf(rules: readonly object[] = [], id = 'provider-x'): ProviderProfile {
  const machines = [...rules, { deploy_timeout_minutes: 15 }];
  return providerProfileSchema.parse({ id, name: 'Provider X', volumes: null, machines });
}

/** One H100 for 2 USD per hour in two regions. Fields that are undefined in `changes` are omitted. */
export function configurationOf(changes: Partial<Record<keyof Configuration, unknown>> = {}): Configuration {
  const whole = {
    id: 'h100-1x',
    name: '1x H100 SXM',
    instance_type: 'DEDICATED',
    vcpus: 24,
    memory_gb: 200,
    storage_gb: 750,
    gpu_count: 1,
    gpu_type: 'NVIDIA H100 SXM',
    gpu_memory_gb: 80,
    price_per_hour: 2,
    available: true,
    regions: ['eu-one', 'us-two'],
    supports_cloud_init: true,
    os_options: ['ubuntu-24.04-cuda-13.0', 'ubuntu-24.04'],
    extras: { berth: { restart: true, stopped_price_per_hour: 0.5 } },
    ...changes,
  };
  const present = Object.entries(whole).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as unknown as Configuration;
}
