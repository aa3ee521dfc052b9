import type { Config } from '../../config/schema.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { cordonableOf } from '../drivers/driver-settings.ts';
import type { Orchestrator } from './orchestrator.ts';

/** The dependencies of an orchestrator's operator API, except for how operators are authenticated. */
export function operatorDepsOf(
  { adminParts, reload }: Pick<Orchestrator, 'adminParts' | 'reload'>,
  { config, catalog }: { config: Config; catalog: Catalog },
) {
  const { http, facts, store, maxLosses } = adminParts;
  return {
    ...http,
    store,
    maxLosses,
    reload,
    sale: http.platform,
    sold: cordonableOf(config, () => catalog),
    platforms: facts,
  };
}
