import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Finding, toFindings } from './findings.ts';
import type { YamlFile } from './yaml-file.ts';

/** The TLS files are read at start; that they can be is seen here. */
export function tlsFindings(yaml: YamlFile): Finding[] {
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
