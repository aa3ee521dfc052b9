import type { z } from 'zod';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { DriverManifest, PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { CertificateSeen } from '../../ports/certificates.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import type { Log } from '../../ports/log.ts';
import type { Asking } from './asking.ts';

/** The keys under `platform:` in berth.yaml, parsed by the driver that `driver` names. */
export interface DriverOptions {
  driver: string;
}

/** What a driver is given besides its options. */
export interface DriverSetting {
  /** The name of the platform; `default` for a single platform without a name in berth.yaml. */
  platform: string;
  /** The offers whose machines the driver makes. */
  catalog: Catalog;
  /** The orchestrator's SQLite file. A driver may keep files beside it. Undefined with PostgreSQL. */
  databaseFile: string | undefined;
  /** The environment, for secrets. */
  env: Readonly<Record<string, string | undefined>>;
  /** The umask for programs that the driver runs. Undefined for that of this process. */
  umask?: number | undefined;
  clock: Clock;
  log: Log;
  /** Reports the certificates that a driver sees. Without it, they are not reported. */
  certificateSeen?: (use: 'driver' | 'incus_server' | 'incus_client') => CertificateSeen;
  /** Present when `berth doctor` opens the driver. Absent when it is opened to serve. */
  asking?: Asking | undefined;
}

/** What docs/drivers.md says of a driver besides its manifests. */
export interface DriverAbout {
  /** The versions that its tests run on, such as `Incus 6.0.4`. */
  provedOn: string;
  /** The test files that prove it, from the root of the repository. */
  provedBy: readonly string[];
  /** What an operator may not expect of it, a sentence each. */
  traps: readonly string[];
  /** The page that sets it up, from docs/. */
  guide: string;
}

/** A manifest of a driver, with the setting that it depends on. */
export interface ManifestOfSetting {
  setting?: string;
  manifest: DriverManifest;
}

/** A driver, as `driver.ts` of its folder exports it for `drivers/registry.ts`. */
export interface DriverDefinition<Options extends DriverOptions = DriverOptions> {
  /** The value of `platform.driver` that selects it. */
  readonly name: Options['driver'];
  readonly about: DriverAbout;
  /** Its manifests, for docs/drivers.md. Absent if only the program behind it knows them. */
  manifests?(): Promise<readonly ManifestOfSetting[]>;
  /** Its keys under `platform:`: a strict object with `driver: z.literal(name)`. */
  readonly configSchema: z.ZodType<Options> & z.core.$ZodTypeDiscriminable;
  /** The keys that name files. A relative path is resolved against berth.yaml, so the driver gets an absolute one. */
  readonly fileKeys?: readonly string[];
  /**
   * Checks whether the driver could be opened, as far as this machine can tell. Writes nothing and calls nothing.
   *
   * @throws {Fatal} with a message for the operator
   */
  check(options: Options, setting: DriverSetting): void;
  /**
   * Checks whether the offers can be made with these options. Called before `open` and after each catalog reload.
   *
   * @throws {Fatal} with a message for the operator
   */
  checkCatalog?(options: Options, catalog: Catalog): void;
  /** Schema of an offer's `machine:` in the catalog. Absent if offers have none. */
  readonly offerSchema?: z.ZodType;
  /** Whether it chooses among hosts and obeys `avoidHosts`, so that an operator can cordon its hosts in Berth. */
  readonly placesOnHosts?: true;
  /** Checks each prerequisite for `berth doctor`. Makes no lasting change. */
  diagnose?(options: Options, setting: DriverSetting): AsyncIterable<Diagnosis>;
  /** @throws {Fatal} with a message for the operator */
  open(options: Options, setting: DriverSetting): Promise<PlatformDriver>;
}
