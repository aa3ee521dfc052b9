import { platformsOf } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import { driverNamed } from '../drivers/registry.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { Cordonable } from '../orchestrator/operate/actions/cordons.ts';

/** The parts of a configuration that can be cordoned. */
export function cordonableOf(config: Config, catalog: Catalog): Cordonable {
  const platforms = [...platformsOf(config)].map(
    ([name, { driver }]): [string, { placesOnHosts: boolean }] => [
      name,
      { placesOnHosts: driverNamed(driver).placesOnHosts === true },
    ],
  );
  return { catalog, platforms: new Map(platforms) };
}
