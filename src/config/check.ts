import { collectFindings, type Finding, toFindings, toPlainIssues } from './findings.ts';
import { catalogFileOf } from './load.ts';
import { readCatalogFile } from './load-catalog.ts';
import { isMarketplaceFile, marketplaceFindings } from './marketplace/check.ts';
import { configSchema } from './schema.ts';
import { tlsFindings } from './tls-findings.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/**
 * Everything that is wrong with a config file, of an orchestrator or of a marketplace, and with the files that it
 * points at; nothing, if Berth can serve with them. Without a file: the bundled catalog is checked.
 */
export function checkConfig(file: string | undefined): Finding[] {
  if (file === undefined) return collectFindings(() => catalogFindings(catalogFileOf(undefined, undefined)));
  return collectFindings(() => {
    const yaml = readYamlFile(file);
    if (isMarketplaceFile(yaml)) return marketplaceFindings(yaml);
    const parsed = configSchema.safeParse(yaml.value);
    const config = parsed.success ? [] : toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues));
    return [...config, ...tlsFindings(yaml), ...collectFindings(() => pointedAtFindings(yaml))];
  });
}

function pointedAtFindings(yaml: YamlFile): Finding[] {
  const { catalog } = yaml.value;
  if (catalog !== undefined && (typeof catalog !== 'string' || catalog === '')) return [];
  return catalogFindings(catalogFileOf(catalog, yaml.file));
}

function catalogFindings(file: string): Finding[] {
  const read = readCatalogFile(file);
  return 'findings' in read ? read.findings : [];
}
