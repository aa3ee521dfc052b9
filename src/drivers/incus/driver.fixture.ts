import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { IncusApi } from './api.ts';
import { driverOf } from './open.ts';
import { incusConfigSchema } from './options.ts';
import { platformOf } from './platform.ts';

interface Given {
  options?: object;
  offers?: Map<string, object>;
  instances?: object;
  fleet?: object;
}

/** The driver over a fake API, which has only the calls that the test needs. */
export function driverOver(api: object, { options = {}, offers = new Map(), ...parts }: Given = {}) {
  const config = incusConfigSchema.parse({ driver: 'incus', ...options });
  const catalog = { offers, regions: new Map() } as unknown as Catalog;
  const platform = platformOf(api as IncusApi, config, catalog, () => 0);
  return driverOf({ ...platform, wait: async () => undefined, ...(parts as object) });
}
