import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { importsOf } from './support/imports.ts';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const packageFiles: string[] = JSON.parse(read('package.json')).files;
/** What .dockerignore lets through: names at the root of the repository. */
const [everything, ...letThrough] = read('.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
/** The instructions of the Dockerfile's last stage. */
const lastStage =
  read('Dockerfile')
    .split(/^FROM .*$/m)
    .at(-1) ?? '';

it('the build of the image sees all that the package is built from, and all that it holds', () => {
  const { include } = JSON.parse(read('build/tsconfig.json'));
  const needed = [
    ...packageFiles.filter((path) => path !== 'dist' && !path.startsWith('!')),
    ...include.map((path: string) => path.replace('../', '')),
  ];
  const always = [
    'build',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'build/tsconfig.json',
    'README.md',
  ];
  expect(everything).toBe('*');
  for (const path of [...needed, ...always]) {
    expect(existsSync(new URL(`../${path}`, import.meta.url)), `${path} exists`).toBe(true);
    expect(letThrough).toContain(`!${path.split('/')[0]}`);
  }
});

it('the build of the image sees what the build imports', () => {
  const scripts = globSync('build/*.ts', { cwd: new URL('../', import.meta.url) });
  const imported = scripts.flatMap((path) => importsOf(path, read(path)).files);
  expect(imported).not.toEqual([]);
  const isLetThrough = (path: string): boolean =>
    letThrough.some((line) => `${path}/`.startsWith(`${line.slice(1)}/`));
  expect(imported.filter((path) => !isLetThrough(path))).toEqual([]);
});

it('the image holds what `npm pack` packs, and nothing that is listed a second time', () => {
  const copies = [...lastStage.matchAll(/^COPY (.*)$/gm)].map(([, copy]) => copy);
  expect(copies).toEqual(['--from=build /package ./', '--from=build /build/node_modules ./node_modules']);
  expect(read('Dockerfile')).toMatch(/npm pack .*[\s\S]*tar -xzf .* -C \/package/);
});

it('the package names its licence, and holds its text', () => {
  expect(JSON.parse(read('package.json')).license).toBe('Apache-2.0');
  expect(packageFiles).toContain('LICENSE');
  expect(read('LICENSE')).toMatch(/Apache License\s+Version 2\.0[\s\S]*END OF TERMS AND CONDITIONS/);
});
