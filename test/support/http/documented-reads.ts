import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../src/config/package-root.ts';

/** The path of every GET of a published document, with `id` in place of each parameter. */
export function documentedReads(document: string, id: string): string[] {
  const text = readFileSync(join(packageRoot(), 'openapi', `${document}.json`), 'utf8');
  const { paths } = JSON.parse(text) as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, item]) =>
    'get' in item ? [path.replaceAll(/\{\w+\}/g, id)] : [],
  );
}
