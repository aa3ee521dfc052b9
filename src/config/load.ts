import { dirname, join, resolve } from 'node:path';
import type { z } from 'zod';
import { type Catalog, parseCatalogFile, toCatalog } from '../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../orchestrator/catalog/catalog-schema.ts';
import { ConfigError, type Finding, toFindings, toPlainIssues } from './findings.ts';
import { packageRoot } from './package-root.ts';
import {
  type ConfigSources,
  createPathResolver,
  parseConfig,
  resolveServerPaths,
  type ServerPaths,
} from './parse-config.ts';
import {
  type PlatformOptions,
  platformIssues,
  resolvePlatformFiles,
  type SellingPlatforms,
} from './platforms.ts';
import { type Config, configSchema } from './schema.ts';
import { type ConfigFlags, type Environment, readOverrides } from './settings.ts';
import { readYamlFile } from './yaml-file.ts';

export interface LoadedConfig {
  config: Config;
  sources: ConfigSources;
}

export interface LoadOptions {
  /** `--config`. Default: `BERTH_CONFIG`, then the built-in defaults (the simulator and Halyard). */
  file?: string | undefined;
  flags: ConfigFlags;
  env: Environment;
}

/**
 * Loads the configuration: flag > environment > file > default. Paths in the file are relative to the file, others to
 * the working directory.
 * @throws {ConfigError} with every finding
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  return loadConfigAs(configSchema, options);
}

/** Like {@link loadConfig}, with the schema of other drivers. @throws {ConfigError} */
export function loadConfigAs<File extends ServerPaths & PlatformOptions & { catalog?: string | undefined }>(
  schema: z.ZodType<File>,
  { file = undefined, flags, env }: LoadOptions,
): { config: File & { catalog: string }; sources: ConfigSources } {
  const path = file ?? (env['BERTH_CONFIG'] || undefined);
  const yaml = path === undefined ? undefined : readYamlFile(path);
  const { config, sources } = parseConfig(schema, yaml, readOverrides(flags, env));
  if (!sources.has('catalog')) sources.set('catalog', 'default');
  const absolute = createPathResolver(yaml?.file, sources);
  return {
    config: {
      ...resolvePlatformFiles(resolveServerPaths(config, absolute), absolute),
      catalog: catalogFileOf(config.catalog, yaml?.file),
    },
    sources,
  };
}

/** The bundled catalog. */
export function bundledCatalogFile(): string {
  return join(packageRoot(), 'fixtures', 'catalogs', 'halyard.yaml');
}

/** Resolves `catalog` of a config file relative to that file. */
export function catalogFileOf(catalog: string | undefined, configFile: string | undefined): string {
  return catalog === undefined
    ? bundledCatalogFile()
    : resolve(configFile === undefined ? '.' : dirname(configFile), catalog);
}

/**
 * Loads a catalog. With `platforms`, it also checks that the catalog fits them.
 * @throws {ConfigError} with every finding, each at its line
 */
export function loadCatalog(file: string, platforms?: SellingPlatforms): Catalog {
  const [usual] = platforms?.keys() ?? [];
  return toCatalog(loadCatalogFile(file, platforms), usual);
}

/** Like {@link loadCatalog}, as the file has it. @throws {ConfigError} */
export function loadCatalogFile(file: string, platforms?: SellingPlatforms): CatalogFile {
  const read = readCatalogFile(file, platforms);
  if ('findings' in read) throw new ConfigError(read.findings);
  return read.catalog;
}

/** @throws {ConfigError} if the file is not YAML. */
export function readCatalogFile(
  file: string,
  platforms?: SellingPlatforms,
): { catalog: CatalogFile } | { findings: Finding[] } {
  const yaml = readYamlFile(file);
  const parsed = parseCatalogFile(yaml.value);
  const issues = [
    ...('issues' in parsed ? toPlainIssues(yaml.value, parsed.issues) : []),
    ...(platforms === undefined ? [] : platformIssues(yaml.value, platforms)),
  ];
  return 'file' in parsed && issues.length === 0
    ? { catalog: parsed.file }
    : { findings: toFindings(yaml, issues) };
}
