import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { expect, it } from 'vitest';
import { applyPatch, isPatch } from './mutant.ts';
import { mutants } from './mutants.ts';
import { seedOf, withFinds } from './seeds.ts';

const MOST_CHARACTERS = 80;
const patched = mutants.flatMap(({ id, plant }) => (isPatch(plant) ? [[id, plant] as const] : []));
const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

it.each(patched)(
  'the patch of %s has a short anchor, once in its file, and leaves TypeScript',
  (_, patch) => {
    const { file, anchor } = patch;
    expect(anchor).not.toContain('\n');
    expect(anchor.length).toBeLessThanOrEqual(MOST_CHARACTERS);
    const source = applyPatch(patch, read(`../../${file}`));
    expect(parseSync(file, source).errors).toEqual([]);
  },
);

it('says which anchor is lost, and which is there twice', () => {
  const patch = { file: 'a.ts', anchor: 'b', replacement: 'c' };
  expect(() => applyPatch(patch, 'none of it')).toThrow('a.ts has this anchor 0 times: b');
  expect(() => applyPatch(patch, 'b and b')).toThrow('2 times');
});

it('has a seed for each mutant and no other, in seeds.md', () => {
  const document = read('seeds.md');
  for (const mutant of mutants) expect(seedOf(mutant, document)).toBeGreaterThan(0);
  expect(withFinds(document, mutants, new Map())).toBe(document);
  expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length);
});
