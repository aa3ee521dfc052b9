import type { z } from 'zod';
import type { DriverDefinition } from '../drivers/kit/driver-definition.ts';
import { drivers } from '../drivers/registry.ts';
import { collectFindings, type Finding, toFindings, toPlainIssues, type YamlFile } from './findings.ts';
import { catalogFileOf, readCatalogFile } from './load.ts';
import { isMarketplaceFile, marketplaceFindings } from './marketplace/load.ts';
import { type SellingPlatforms, sellingPlatforms } from './platforms.ts';
import { type ConfigFile, configSchema } from './schema.ts';
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

/** Lists the regions that sell storage without a limit, one line each. */
export function configNotes(file: string | undefined): string[] {
  const yaml = file === undefined ? undefined : readYamlFile(file);
  if (yaml !== undefined && isMarketplaceFile(yaml)) return [];
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
