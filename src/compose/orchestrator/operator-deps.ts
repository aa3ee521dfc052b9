import type { Config } from '../../config/schema.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { Doctor } from '../../orchestrator/operate/doctor.ts';
import type { Clock } from '../../ports/clock.ts';
import { cordonableOf } from '../drivers/driver-settings.ts';
import type { Orchestrator } from './orchestrator.ts';

interface Parts {
  config: Config;
  catalog: Catalog;
  clock: Clock;
  /** What the doctor examines. */
  examine: ConstructorParameters<typeof Doctor>[0]['examine'];
}

/** The dependencies of an orchestrator's operator API, except for how operators are authenticated. */
export function operatorDepsOf(
  { adminParts, reload }: Pick<Orchestrator, 'adminParts' | 'reload'>,
  { config, catalog, clock, examine }: Parts,
) {
  const { http, facts, store, maxLosses } = adminParts;
  return {
    ...http,
    store,
    maxLosses,
    reload,
    doctor: new Doctor({ clock, examine }),
    sale: http.platform,
    sold: cordonableOf(config, () => catalog),
    platforms: facts,
  };
}
