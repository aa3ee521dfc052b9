import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { pages, readPage, root } from './pages.ts';

/** Without what stands in blocks of code, and in code within a line. */
const proseOf = (text: string): string =>
  text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '`');

/** Where the links of a page lead, from the root of the repository: those to other sites are left out. */
function linksOf(page: string, text = readPage(page)): { path: string; anchor: string | undefined }[] {
  const targets = [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter((target) => !/^\w+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#');
      return { path: path === '' ? page : join(dirname(page), path), anchor };
    });
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(text: string): string[] {
  const headings = text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Undefined: the link leads to a file, and to a heading of it. */
function findProblem({ path, anchor }: { path: string; anchor: string | undefined }): string | undefined {
  if (!existsSync(join(root, path))) return `there is no ${path}`;
  if (anchor === undefined || anchorsOf(readPage(path)).includes(anchor)) return undefined;
  return `${path} has no heading #${anchor}`;
}

it.each(pages)('the links of %s lead somewhere', (page) => {
  expect(linksOf(page).flatMap((link) => findProblem(link) ?? [])).toEqual([]);
});

it.each(['docs', 'docs/decisions'])('every page of %s is in its index', (folder) => {
  const index = join(folder, 'README.md');
  const listed = linksOf(index).map(({ path }) => path);
  const missing = pages.filter(
    (page) => dirname(page) === folder && page !== index && !listed.includes(page),
  );
  expect(missing.map((page) => relative(folder, page))).toEqual([]);
});

it('the README leads to the index, and the index to that of the decisions', () => {
  expect(linksOf('README.md').map(({ path }) => path)).toContain('docs/README.md');
  expect(linksOf('docs/README.md').map(({ path }) => path)).toContain('docs/decisions/README.md');
});

it('a link that leads nowhere is seen, and one in code is none', () => {
  const text =
    '[a](none.md) [b](errors.md#none) [c](https://example.com/x) `[d](e.md)` [f](#g)\n```\n[h](i.md)\n```\n';
  expect(linksOf('docs/errors.md', text).map(findProblem)).toEqual([
    'there is no docs/none.md',
    'docs/errors.md has no heading #none',
    'docs/errors.md has no heading #g',
  ]);
  expect(findProblem({ path: 'docs/errors.md', anchor: 'error-codes' })).toBeUndefined();
});

it('a page leads to every picture of the consoles', () => {
  const folder = 'docs/console';
  const shown = linksOf('docs/console.md').map(({ path }) => path);
  const pictures = readdirSync(join(root, folder)).map((name) => join(folder, name));
  expect(pictures.filter((picture) => !shown.includes(picture))).toEqual([]);
});
