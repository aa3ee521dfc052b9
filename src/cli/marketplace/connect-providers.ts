import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { packageRoot } from '../../config/package-root.ts';
import { createProviders, type LiveProviders } from '../../marketplace/providers/create-providers.ts';
import { type GpuTypes, parseGpuTypes } from '../../marketplace/providers/gpu-types.ts';
import { systemClock, systemRandom } from '../../runtime/system.ts';
import { createLog } from '../log.ts';
import { createClients } from './create-clients.ts';

/** What providers call their GPUs, from the file that comes with Berth. */
export function loadGpuTypes(): GpuTypes {
  return parseGpuTypes(readFileSync(join(packageRoot(), 'fixtures', 'gpu-types.yaml'), 'utf8'));
}

/** The providers of the configuration, each asked once what it sells; they are closed after `body`. @throws {Fatal} */
export async function withProviders<T>(
  config: MarketplaceConfig,
  body: (providers: LiveProviders) => Promise<T>,
): Promise<T> {
  const parts = { clock: systemClock, random: systemRandom, log: createLog('silent') };
  const providers = createProviders({
    ...parts,
    providers: createClients(config, { ...parts, env: process.env }),
    gpuTypes: loadGpuTypes(),
    catalogMs: config.polling.catalog_s * 1000,
  });
  try {
    await providers.refresh();
    return await body(providers);
  } finally {
    await providers.close();
  }
}
