import { platformsOf } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { DriverDefinition, DriverOptions, DriverSetting } from '../drivers/kit/driver-definition.ts';
import { driverNamed } from '../drivers/registry.ts';
import { catalogOf } from '../orchestrator/catalog/catalog.ts';
import type { CertificateUse } from '../ports/certificates.ts';
import type { Certificates } from '../runtime/certificates.ts';
import { logOf } from './platforms.ts';

/** A platform of berth.yaml, with all inputs of its driver. */
export interface ConfiguredDriver {
  platform: string;
  options: DriverOptions;
  definition: DriverDefinition;
  setting: DriverSetting;
}

/** The platforms of a configuration, in its order. */
export function configuredDrivers(
  config: Config,
  {
    catalog,
    clock,
    log,
    certificates,
    ...started
  }: Pick<DriverSetting, 'catalog' | 'clock' | 'log' | 'env' | 'umask'> & { certificates?: Certificates },
): ConfiguredDriver[] {
  const databaseFile = isPostgres(config.database) ? undefined : sqlitePath(config.database);
  const platforms = platformsOf(config);
  return [...platforms].map(([platform, options]) => ({
    platform,
    options,
    definition: driverNamed(options.driver),
    setting: {
      ...started,
      databaseFile,
      clock,
      platform,
      catalog: catalogOf(catalog, platform),
      log: logOf(platform, platforms.size, log),
      ...(certificates !== undefined && {
        certificateSeen: (use: CertificateUse) => certificates.of(use, platform),
      }),
    },
  }));
}
