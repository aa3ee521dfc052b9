import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const manifest = JSON.parse(read('package.json'));
const packed: string[] = manifest.files;
const built: string[] = JSON.parse(read('build/tsconfig.json')).include;

it('.dockerignore lets through all that the package is built from, and all that it holds', () => {
  const [everything, ...letThrough] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(everything).toBe('*');
  const needed = [
    ...packed.filter((path) => path !== 'dist' && !path.startsWith('!')),
    ...built.map((path) => path.replace('../', '')),
    ...['build', 'package.json', 'package-lock.json', 'tsconfig.json', 'README.md'],
  ];
  expect(needed.filter((path) => !existsSync(new URL(`../../${path}`, import.meta.url)))).toEqual([]);
  const isLetThrough = (path: string): boolean => letThrough.includes(`!${path.split('/')[0]}`);
  expect(needed.filter((path) => !isLetThrough(path))).toEqual([]);
  expect(isLetThrough('simulation/run.ts')).toBe(false);
});

it('the package installs no types: those of Node are the ones of the program that uses it', () => {
  const { dependencies, peerDependencies, peerDependenciesMeta } = manifest;
  expect(Object.keys(dependencies).filter((name) => name.startsWith('@types/'))).toEqual([]);
  expect(peerDependencies['@types/node']).toBe(`>=${manifest.engines.node.match(/\d+/)[0]}`);
  expect(peerDependenciesMeta['@types/node']).toEqual({ optional: true });
});

it('the image has the `berth` of the commands that its servers print', () => {
  const image = read('Dockerfile');
  const [, program = ''] = /^ENTRYPOINT \[.*"(\S+)"\]$/m.exec(image) ?? [];
  expect(image).toMatch(/^WORKDIR \/app$/m);
  expect(image).toContain(`ln -s /app/${program} /usr/local/bin/berth`);
});
