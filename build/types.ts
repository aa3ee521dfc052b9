import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importsOf } from './imports.ts';

// The last part of `npm run build`: of the declarations that tsc wrote, keeps those that the exports lead to. They may
// name only packages that an installation has: others would be missing there. The types of Node are those of the program
// that uses the package; TypeScript 7 loads them only for files that ask for them.

const TYPES = 'dist/types';
const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const installed = new Set(['node:', ...Object.keys({ ...dependencies, ...peerDependencies })]);
const kept = new Set<string>();

for (const target of Object.values<string | { types: string }>(exports))
  if (typeof target === 'object') keepEntry(target.types.replace('./', ''));
for (const file of globSync(`${TYPES}/**/*.d.ts`)) if (!kept.has(file)) rmSync(file);

function keepEntry(file: string): void {
  keep(file);
  writeFileSync(file, `/// <reference types="node" />\n${readFileSync(file, 'utf8')}`);
}

function keep(file: string): void {
  if (kept.has(file)) return;
  kept.add(file);
  const { files, packages } = importsOf(file, readFileSync(file, 'utf8'));
  const missing = packages.filter((name) => !installed.has(name));
  if (missing.length > 0) throw new Error(`${file} needs the types of ${missing.join(', ')}`);
  for (const path of files) keep(join(path.replace(/\.[jt]s$/, '.d.ts')));
}
