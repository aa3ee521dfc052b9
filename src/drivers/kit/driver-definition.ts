import type { z } from 'zod';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { CertificateSeen } from '../../ports/certificates.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import type { Log } from '../../ports/log.ts';
import type { Asking } from './asking.ts';

/** What an operator writes under `platform:` in berth.yaml, read by the driver that it names. */
export interface DriverOptions {
  driver: string;
}

/** A base image that an operator wants in a platform. */
export interface ImageImport {
  /** What the catalog's `os_options` call it. */
  name: string;
  /** A file of this machine. */
  file: string;
  /** Of several hosts, the one that is to have it; undefined: all of them. */
  host: string | undefined;
  /** Whether it may take the place of another that no machine was made from. */
  replace: boolean;
}

/** What a driver is given beside its options. */
export interface DriverSetting {
  /** The name of the platform: `default` where it is the only one, and has no name in berth.yaml. */
  platform: string;
  /** What it sells: the offers whose machines it is to make. */
  catalog: Catalog;
  /** The SQLite file of the orchestrator, beside which a driver may keep files; undefined: it is on PostgreSQL. */
  databaseFile: string | undefined;
  /** The environment, for secrets. */
  env: Readonly<Record<string, string | undefined>>;
  /** What files of the programs that it runs get; undefined: that of the process. */
  umask?: number | undefined;
  clock: Clock;
  log: Log;
  /** Where what a driver finds out about certificates is reported; absent: nowhere. */
  certificateSeen?: (use: 'driver' | 'incus_server' | 'incus_client') => CertificateSeen;
  /** Where `berth doctor` asks; absent: what is opened serves. */
  asking?: Asking | undefined;
}

/** A driver as its folder exports it, in `driver.ts`, for the list in `drivers/registry.ts`. */
export interface DriverDefinition<Options extends DriverOptions = DriverOptions> {
  /** What `platform.driver` names it by. */
  readonly name: Options['driver'];
  /** Its keys under `platform:`, a strict object with `driver: z.literal(name)`. */
  readonly configSchema: z.ZodType<Options> & z.core.$ZodTypeDiscriminable;
  /** The keys among these that name files: a relative path is relative to berth.yaml, and the driver is given an absolute one. */
  readonly fileKeys?: readonly string[];
  /** The keys among these that are lists of environment variables, each of which must be set where Berth starts. */
  readonly variableKeys?: readonly string[];
  /**
   * Whether it could be opened, as far as this machine can tell. Writes nothing and calls nothing.
   *
   * @throws {Fatal} with a sentence for the operator
   */
  check(options: Options, setting: DriverSetting): void;
  /**
   * Whether what is sold can be made with these options, before it is opened and again when the catalog is read anew.
   *
   * @throws {Fatal} with a sentence for the operator
   */
  checkCatalog?(options: Options, catalog: Catalog): void;
  /** What an offer of the catalog may say under `machine:`. Absent: nothing. */
  readonly offerSchema?: z.ZodType;
  /** Whether it chooses among hosts and heeds `avoidHosts`: an operator can cordon one of its hosts in Berth. */
  readonly placesOnHosts?: true;
  /** Looks at every prerequisite, one by one, for `berth doctor`. Changes nothing that stays. */
  diagnose?(options: Options, setting: DriverSetting): AsyncIterable<Diagnosis>;
  /**
   * Puts a base image into the platform, for `berth image import`, and tells of each step; `broken` is one that failed.
   * What was put there in part is never used.
   *
   * @throws {Fatal} with a sentence for the operator
   */
  importImage?(options: Options, setting: DriverSetting, image: ImageImport): AsyncIterable<Diagnosis>;
  /** Where it cannot do that: how images get there, in a sentence. */
  readonly imageAdvice?: string;
  /** @throws {Fatal} with a sentence for the operator */
  open(options: Options, setting: DriverSetting): Promise<PlatformDriver>;
}
