import { dirname, join, resolve } from 'node:path';
import { formatPath } from '../contract/errors.ts';
import {
  ConfigError,
  type Finding,
  type PlainIssue,
  toFindings,
  toPlainIssues,
  valueAt,
} from './findings.ts';
import { packageRoot } from './package-root.ts';
import { type Config, type ConfigFile, configSchema, isPostgres, sqlitePath, toDatabase } from './schema.ts';
import {
  type ConfigFlags,
  type Environment,
  flagOf,
  type Override,
  readOverrides,
  withOverrides,
} from './settings.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/** Where a setting's value comes from. */
type ConfigSource = 'flag' | 'environment' | 'file' | 'default';

export interface LoadedConfig {
  config: Config;
  /** For each setting, such as `server.port`, where its value comes from. */
  sources: ReadonlyMap<string, ConfigSource>;
}

export interface LoadOptions {
  /** `--config`; without it `BERTH_CONFIG`; without that the defaults: the simulator and Halyard. */
  file?: string | undefined;
  flags: ConfigFlags;
  env: Environment;
}

/**
 * The configuration: flag > environment > file > default. Paths in the file are relative to the file,
 * all others to the working directory.
 *
 * @throws {ConfigError} with every finding.
 */
export function loadConfig({ file = undefined, flags, env }: LoadOptions): LoadedConfig {
  const path = file ?? (env['BERTH_CONFIG'] || undefined);
  const yaml = path === undefined ? undefined : readYamlFile(path);
  const overrides = readOverrides(flags, env);
  const raw = withOverrides(yaml?.value ?? {}, overrides);
  const parsed = configSchema.safeParse(raw);
  if (!parsed.success)
    throw new ConfigError(configFindings(yaml, overrides, toPlainIssues(raw, parsed.error.issues)));
  const sources = sourcesOf(parsed.data, yaml?.value ?? {}, overrides);
  return { config: resolvePaths(parsed.data, yaml?.file, sources), sources };
}

/** The catalog that comes with Berth. */
export function bundledCatalogFile(): string {
  return join(packageRoot(), 'fixtures', 'catalogs', 'halyard.yaml');
}

/** `catalog` as a config file names it, relative to that file. */
export function catalogFileOf(catalog: string | undefined, configFile: string | undefined): string {
  return catalog === undefined
    ? bundledCatalogFile()
    : resolve(configFile === undefined ? '.' : dirname(configFile), catalog);
}

/** An issue about an override names its flag or variable; any other one its place in the file. */
function configFindings(
  yaml: YamlFile | undefined,
  overrides: readonly Override[],
  issues: readonly PlainIssue[],
): Finding[] {
  const findings: Finding[] = [];
  const inFile: PlainIssue[] = [];
  for (const issue of issues) {
    const path = formatPath(issue.path);
    const culprit = overrides.find((override) => formatPath(override.path) === path);
    const sibling = siblingOf(issue, overrides, yaml);
    const place = { line: undefined, column: undefined, path };
    if (culprit !== undefined) findings.push({ file: culprit.name, ...place, message: issue.message });
    else if (sibling !== undefined)
      findings.push({
        file: sibling.name,
        ...place,
        message: `needs ${flagOf(issue.path) ?? path} beside it`,
      });
    else inFile.push(issue);
  }
  return [...findings, ...(yaml === undefined ? [] : toFindings(yaml, inFile))];
}

/** A key that only an override made necessary, as `--tls-cert` does with `server.tls.key`. */
function siblingOf(
  { path }: PlainIssue,
  overrides: readonly Override[],
  yaml: YamlFile | undefined,
): Override | undefined {
  const parent = path.slice(0, -1);
  if (parent.length === 0 || valueAt(yaml?.value, parent) !== undefined) return undefined;
  return overrides.find((override) => formatPath(override.path.slice(0, -1)) === formatPath(parent));
}

function sourcesOf(
  config: ConfigFile,
  raw: Record<string, unknown>,
  overrides: readonly Override[],
): Map<string, ConfigSource> {
  const sources = new Map<string, ConfigSource>([['catalog', 'default']]);
  for (const path of leavesOf(config))
    sources.set(formatPath(path), valueAt(raw, path) === undefined ? 'default' : 'file');
  for (const { path, source } of overrides) sources.set(formatPath(path), source);
  return sources;
}

function leavesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

function resolvePaths(
  config: ConfigFile,
  file: string | undefined,
  sources: ReadonlyMap<string, ConfigSource>,
): Config {
  const fileFolder = file === undefined ? '.' : dirname(file);
  const absolute = (setting: string, path: string) =>
    resolve(sources.get(setting) === 'file' ? fileFolder : '.', path);
  const { server } = config;
  const tls = server.tls && {
    cert: absolute('server.tls.cert', server.tls.cert),
    key: absolute('server.tls.key', server.tls.key),
  };
  return {
    ...config,
    server: tls === undefined ? server : { ...server, tls },
    database: isPostgres(config.database)
      ? config.database
      : toDatabase(absolute('database', sqlitePath(config.database))),
    catalog: catalogFileOf(config.catalog, file),
  };
}
