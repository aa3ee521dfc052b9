import { existsSync, globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { proofs } from './support/proofs.ts';
import { readPage, withTable } from './support/proofs-table.ts';

it('docs/proofs.md has a row for each proof', async () => {
  await expect(withTable(readPage())).toMatchFileSnapshot('../docs/proofs.md');
});

it.each(Object.entries(proofs))('%s has parts, of files that are there', (_name, { parts, folders }) => {
  const commands = parts(1, (pattern) => globSync(pattern)).flatMap(({ command }) => command);
  const files = commands.filter((word) => /\.(ts|sh)$/.test(word));
  expect(files.length).toBeGreaterThan(0);
  expect([...files, ...folders].filter((file) => !existsSync(file))).toEqual([]);
});
