import type { z } from 'zod';
import type { DriverDefinition } from '../drivers/kit/driver-definition.ts';
import { drivers } from '../drivers/registry.ts';
import {
  collectFindings,
  type Finding,
  type IssuePath,
  type PlainIssue,
  toFindings,
  toLine,
  toPlainIssues,
  type YamlFile,
} from './findings.ts';
import { catalogFileOf, readCatalogFile } from './load.ts';
import { isMarketplaceFile, marketplaceFindings } from './marketplace/load.ts';
import { type SellingPlatforms, sellingPlatforms } from './platforms.ts';
import { type ConfigFile, configSchema } from './schema.ts';
import type { Environment } from './settings.ts';
import { readYamlFile } from './yaml-file.ts';

/**
 * Returns the problems of a file and of the files that it names. If there are none, Berth can serve with them. Without
 * a file, it checks the bundled catalog.
 */
export function checkConfig(
  file: string | undefined,
  schema: z.ZodType = configSchema,
  among: readonly DriverDefinition[] = drivers,
): Finding[] {
  if (file === undefined) return collectFindings(() => catalogFindings(catalogFileOf(undefined, undefined)));
  return collectFindings(() => {
    const yaml = readYamlFile(file);
    if (isMarketplaceFile(yaml)) return marketplaceFindings(yaml);
    const parsed = schema.safeParse(yaml.value);
    const config = parsed.success ? [] : toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues));
    // An invalid configuration does not say which platforms there are.
    const platforms = parsed.success ? sellingPlatforms(parsed.data as ConfigFile, among) : undefined;
    return [...config, ...collectFindings(() => pointedAtFindings(yaml, platforms))];
  });
}

/**
 * Lists the environment variables that are not set here, and the regions that sell storage without a limit, one line
 * each.
 */
export function configNotes(file: string | undefined, env: Environment): string[] {
  const yaml = file === undefined ? undefined : readYamlFile(file);
  const unset = yaml === undefined ? [] : toFindings(yaml, unsetVariables(yaml.value, env)).map(toLine);
  return yaml !== undefined && isMarketplaceFile(yaml) ? unset : [...unset, ...storageNotes(yaml)];
}

/** A server does not start without these variables. The file can still be valid: it may be meant for another machine. */
function unsetVariables(value: unknown, env: Environment, path: IssuePath = []): PlainIssue[] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, inner]) =>
      unsetVariables(inner, env, [...path, Array.isArray(value) ? Number(key) : key]),
    );
  const name = String(value);
  const isSecret = /^(api_key|password|url)_env$/.test(String(path.at(-1)));
  const isSet = isSecret ? env[name]?.trim() || env[`${name}_FILE`] : env[name] !== undefined;
  if (isSet || !(isSecret || path.at(-2) === 'environment')) return [];
  const what = `${name} is not set here${isSecret ? `, nor ${name}_FILE` : ''}`;
  return [
    { path, message: `the environment variable ${what}; the server does not start without it`, at: 'value' },
  ];
}

function storageNotes(yaml: YamlFile | undefined): string[] {
  const { catalog } = yaml?.value ?? {};
  const catalogFile = catalogFileOf(typeof catalog === 'string' ? catalog : undefined, yaml?.file);
  const read = readCatalogFile(catalogFile);
  if ('findings' in read) return [];
  return Object.entries(read.catalog.regions)
    .filter(
      ([, { volume_types, storage_capacity_gb }]) =>
        volume_types.length > 0 && storage_capacity_gb === undefined,
    )
    .map(
      ([token]) =>
        `${catalogFile} regions.${token}: no storage_capacity_gb, so its storage is sold without a limit`,
    );
}

function pointedAtFindings(yaml: YamlFile, platforms: SellingPlatforms | undefined): Finding[] {
  const { catalog } = yaml.value;
  if (catalog !== undefined && (typeof catalog !== 'string' || catalog === '')) return [];
  return catalogFindings(catalogFileOf(catalog, yaml.file), platforms);
}

function catalogFindings(file: string, platforms?: SellingPlatforms): Finding[] {
  const read = readCatalogFile(file, platforms);
  return 'findings' in read ? read.findings : [];
}
