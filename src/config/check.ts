import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError, type Finding, toFindings, toPlainIssues } from './findings.ts';
import { catalogFileOf } from './load.ts';
import { readCatalogFile } from './load-catalog.ts';
import { configSchema } from './schema.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/**
 * Everything that is wrong with a config file and with the catalog that it points at; nothing, if
 * Berth can serve with them. Without a file: the bundled catalog is checked.
 */
export function checkConfig(file: string | undefined): Finding[] {
  if (file === undefined) return collect(() => catalogFindings(catalogFileOf(undefined, undefined)));
  return collect(() => {
    const yaml = readYamlFile(file);
    const parsed = configSchema.safeParse(yaml.value);
    const config = parsed.success ? [] : toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues));
    return [...config, ...tlsFindings(yaml), ...collect(() => pointedAtFindings(yaml))];
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

/** The TLS files are read at start; that they can be is seen here. */
function tlsFindings(yaml: YamlFile): Finding[] {
  const tls = (yaml.value['server'] as { tls?: Record<string, unknown> } | null | undefined)?.tls;
  return ['cert', 'key'].flatMap((part) => {
    const path = tls?.[part];
    if (typeof path !== 'string' || path === '' || isReadable(resolve(dirname(yaml.file), path))) return [];
    return toFindings(yaml, [
      { path: ['server', 'tls', part], message: 'expected a file that can be read', at: 'value' },
    ]);
  });
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

function collect(read: () => Finding[]): Finding[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError) return [...error.findings];
    throw error;
  }
}
