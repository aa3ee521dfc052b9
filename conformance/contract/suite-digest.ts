import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { packageRoot } from './package.ts';

/** Data that the suite reads beside its program. */
const DATA = [
  'package.json',
  'conformance/requirements.yaml',
  'conformance/report/schema.json',
  'openapi/orchestrator.v1.json',
  'fixtures/transitions.json',
];
const TEST = /\.(test|fixture|matrix)\.ts$|^conformance\/mutants\//;

let known: string | undefined;

/**
 * The digest of the files from which this suite runs, hex: the SHA-256 of a line `<SHA-256>  <path>` for each file, as
 * `sha256sum` writes it, sorted by path. In the installed package these are `dist/*.js`, which hold the libraries; in a
 * clone the files of `conformance/` without its tests, and `package-lock.json`, which pins the libraries. So the two
 * differ. It is what the program says of itself: a changed program can say something else.
 */
export function suiteDigest(): string {
  known ??= digestOfFiles([...DATA, ...(isBuilt() ? builtFiles() : ['package-lock.json', ...sourceFiles()])]);
  return known;
}

function isBuilt(): boolean {
  return relative(packageRoot, import.meta.dirname).split(/[\\/]/)[0] === 'dist';
}

function builtFiles(): string[] {
  return readdirSync(join(packageRoot, 'dist'))
    .filter((name) => name.endsWith('.js'))
    .map((name) => `dist/${name}`);
}

function sourceFiles(): string[] {
  return readdirSync(join(packageRoot, 'conformance'), { recursive: true, encoding: 'utf8' })
    .map((path) => `conformance/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.ts') && !TEST.test(path));
}

function digestOfFiles(paths: readonly string[]): string {
  const lines = paths.toSorted().map((path) => {
    const sha256 = createHash('sha256')
      .update(readFileSync(join(packageRoot, path)))
      .digest('hex');
    return `${sha256}  ${path}\n`;
  });
  return createHash('sha256').update(lines.join('')).digest('hex');
}
