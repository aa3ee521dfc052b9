import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import { parseCatalogFile, toCatalog } from '../orchestrator/catalog/catalog-file.ts';
import type { CatalogFile } from '../orchestrator/catalog/catalog-schema.ts';
import { ConfigError, type Finding, toFindings, toPlainIssues } from './findings.ts';
import { readYamlFile } from './yaml-file.ts';

/** @throws {ConfigError} with every finding, each at its line. */
export function loadCatalog(file: string): Catalog {
  const read = readCatalogFile(file);
  if ('findings' in read) throw new ConfigError(read.findings);
  return toCatalog(read.catalog);
}

/** @throws {ConfigError} if the file is no YAML at all. */
export function readCatalogFile(file: string): { catalog: CatalogFile } | { findings: Finding[] } {
  const yaml = readYamlFile(file);
  const parsed = parseCatalogFile(yaml.value);
  return 'file' in parsed
    ? { catalog: parsed.file }
    : { findings: toFindings(yaml, toPlainIssues(yaml.value, parsed.issues)) };
}
