import { platformsOf } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { DriverDefinition, DriverOptions, DriverSetting } from '../../drivers/kit/driver-definition.ts';
import { driverNamed } from '../../drivers/registry.ts';
import { catalogOf } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformFacts } from '../../orchestrator/operate/views/platforms.ts';
import type { CertificateUse } from '../../ports/certificates.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Certificates } from '../../runtime/certificates.ts';

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

/** The named platform of a configuration, or its only one. @throws {Fatal} */
export function configuredDriver(
  config: Config,
  platform: string | undefined,
  started: Parameters<typeof configuredDrivers>[1],
): ConfiguredDriver {
  const drivers = configuredDrivers(config, started);
  const names = drivers.map((one) => one.platform).join(', ');
  if (platform === undefined && drivers.length > 1)
    throw new Fatal(`Name the platform: --platform with one of ${names}.`);
  const driver = drivers.find((one) => one.platform === (platform ?? one.platform));
  if (driver === undefined) throw new Fatal(`There is no platform ${platform}; there is ${names}.`);
  return driver;
}

/** The log of one of `count` platforms. If there are several, each line names its platform. */
export function logOf(platform: string, count: number, log: Log): Log {
  if (count === 1) return log;
  const naming =
    (level: keyof Log): Log[typeof level] =>
    (fields, message) =>
      log[level]({ platform, ...fields }, message);
  return { debug: naming('debug'), info: naming('info'), warn: naming('warn'), error: naming('error') };
}

/** The facts about the configured platforms that need no server. */
export function platformFactsOf(config: Config): ReadonlyMap<string, PlatformFacts> {
  return new Map(
    [...platformsOf(config)].map(([name, { driver }]) => [
      name,
      { driver, placesOnHosts: driverNamed(driver).placesOnHosts === true },
    ]),
  );
}
