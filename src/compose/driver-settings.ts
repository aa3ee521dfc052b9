import { platformsOf } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Environment } from '../config/settings.ts';
import type { DriverDefinition, DriverOptions, DriverSetting } from '../drivers/kit/driver-definition.ts';
import { driverNamed } from '../drivers/registry.ts';
import { type Catalog, catalogOf } from '../orchestrator/catalog/catalog.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { logOf } from './platforms.ts';

/** A platform of berth.yaml, with all that its driver is given. */
export interface ConfiguredDriver {
  platform: string;
  options: DriverOptions;
  definition: DriverDefinition;
  setting: DriverSetting;
}

/** The platforms of a configuration, in its order. */
export function configuredDrivers(
  config: Config,
  { catalog, env, clock, log }: { catalog: Catalog; env: Environment; clock: Clock; log: Log },
): ConfiguredDriver[] {
  const databaseFile = isPostgres(config.database) ? undefined : sqlitePath(config.database);
  const platforms = platformsOf(config);
  return [...platforms].map(([platform, options]) => ({
    platform,
    options,
    definition: driverNamed(options.driver),
    setting: {
      databaseFile,
      env,
      clock,
      platform,
      catalog: catalogOf(catalog, platform),
      log: logOf(platform, platforms.size, log),
    },
  }));
}
