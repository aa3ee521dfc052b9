import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { formatPath } from '../contract/errors.ts';
import { valueAt } from '../contract/issue-words.ts';
import { PARSED_ONCE } from '../contract/parse-once.ts';
import {
  ConfigError,
  type Finding,
  type PlainIssue,
  toFindings,
  toPlainIssues,
  type YamlFile,
} from './findings.ts';
import { type Backups, isPostgres, sqlitePath, toDatabase } from './server-schema.ts';
import { applyOverrides, flagOf, type Override } from './settings.ts';

/** Origin of a setting's value. */
type ConfigSource = 'flag' | 'environment' | 'file' | 'default';

/** The origin of each setting, such as `server.port`. */
export type ConfigSources = ReadonlyMap<string, ConfigSource>;

/** Parses the file with the overrides applied. @throws {ConfigError} with every finding */
export function parseConfig<Schema extends z.ZodType>(
  schema: Schema,
  yaml: YamlFile | undefined,
  overrides: readonly Override[],
): { config: z.infer<Schema>; sources: Map<string, ConfigSource> } {
  const raw = applyOverrides(yaml?.value ?? {}, overrides);
  const parsed = schema.safeParse(raw, PARSED_ONCE);
  if (!parsed.success)
    throw new ConfigError(configFindings(yaml, overrides, toPlainIssues(raw, parsed.error.issues)));
  return { config: parsed.data, sources: sourcesOf(parsed.data, yaml?.value ?? {}, overrides) };
}

/**
 * Creates a function that makes paths absolute. Paths in the file are relative to the file, all others to the working
 * directory.
 */
export function createPathResolver(
  file: string | undefined,
  sources: ConfigSources,
): (setting: string, path: string) => string {
  const fileFolder = file === undefined ? '.' : dirname(file);
  return (setting, path) => resolve(sources.get(setting) === 'file' ? fileFolder : '.', path);
}

interface TlsFiles {
  cert: string;
  key: string;
}

export interface ServerPaths {
  server: { tls?: TlsFiles | undefined; admin: { tls?: TlsFiles | undefined } };
  database: string;
  backups?: Backups | undefined;
}

/** Makes the paths that every server's file may have absolute. */
export function resolveServerPaths<Config extends ServerPaths>(
  config: Config,
  absolute: (setting: string, path: string) => string,
): Config {
  const { server, database, backups } = config;
  const filesOf = (setting: string, tls: TlsFiles | undefined): { tls?: TlsFiles } =>
    tls === undefined
      ? {}
      : { tls: { cert: absolute(`${setting}.cert`, tls.cert), key: absolute(`${setting}.key`, tls.key) } };
  return {
    ...config,
    server: {
      ...server,
      ...filesOf('server.tls', server.tls),
      admin: { ...server.admin, ...filesOf('server.admin.tls', server.admin.tls) },
    },
    database: isPostgres(database) ? database : toDatabase(absolute('database', sqlitePath(database))),
    ...(backups && { backups: { ...backups, folder: absolute('backups.folder', backups.folder) } }),
  };
}

/** An issue about an override names its flag or variable. Any other issue has its place in the file. */
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
        message: `needs ${flagOf(issue.path) ?? path} too`,
      });
    else inFile.push(issue);
  }
  return [...findings, ...(yaml === undefined ? [] : toFindings(yaml, inFile))];
}

/** Returns the override that makes a missing key required, such as `--tls-cert` for `server.tls.key`. */
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
  config: unknown,
  raw: Record<string, unknown>,
  overrides: readonly Override[],
): Map<string, ConfigSource> {
  const sources = new Map<string, ConfigSource>();
  for (const path of leavesOf(config))
    sources.set(formatPath(path), valueAt(raw, path) === undefined ? 'default' : 'file');
  for (const { path, source } of overrides) sources.set(formatPath(path), source);
  return sources;
}

function leavesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}
