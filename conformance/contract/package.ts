import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringField } from '../text/json.ts';

/** The folder of the package, which contains `openapi/`, `fixtures/` and `conformance/requirements.yaml`. */
export const packageRoot = find(import.meta.dirname);

function find(folder: string): string {
  if (existsSync(join(folder, 'openapi', 'orchestrator.v1.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('openapi/orchestrator.v1.json is not in this package');
  return find(parent);
}

/** A JSON file of the package. */
export function readPackageJson(path: string): unknown {
  return JSON.parse(readFileSync(join(packageRoot, path), 'utf8'));
}

/** The version of the package, which is that of the suite. */
export const suiteVersion = stringField(readPackageJson('package.json'), 'version') ?? 'unknown';
