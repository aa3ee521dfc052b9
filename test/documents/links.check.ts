import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { pages, readPage, root } from './pages.ts';

const withoutBlocks = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gm, '');

interface Link {
  path: string;
  anchor: string | undefined;
}

/** Where the links of a page lead, from the root of the repository: those to other sites and those in code are left out. */
function linksOf(page: string, text = readPage(page)): Link[] {
  const links = withoutBlocks(text)
    .replaceAll(/`[^`\n]*`/g, '`')
    .matchAll(/\]\((?!\w+:)([^)\s]+)\)/g);
  return [...links].map(([, target = '']) => {
    const [path = '', anchor] = target.split('#');
    return { path: path === '' ? page : join(dirname(page), path), anchor };
  });
}

/** The anchors that GitHub gives to the headings of a page. */
const anchorsOf = (text: string): string[] =>
  [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Undefined: the link leads to a file, and to a heading of it. */
function findProblem({ path, anchor }: Link): string | undefined {
  if (!existsSync(join(root, path))) return `there is no ${path}`;
  if (anchor === undefined || anchorsOf(readPage(path)).includes(anchor)) return undefined;
  return `${path} has no heading #${anchor}`;
}

it('the links of every page lead somewhere', () => {
  expect(pages.flatMap((page) => linksOf(page).flatMap((link) => findProblem(link) ?? []))).toEqual([]);
});

it('the README leads to the index of docs/, and the indexes to every page and picture', () => {
  const leadsTo = (page: string): string[] => linksOf(page).map(({ path }) => path);
  const pagesOf = (folder: string): string[] =>
    pages.filter((page) => dirname(page) === folder && page !== `${folder}/README.md`);
  const pictures = readdirSync(join(root, 'docs/console')).map((name) => `docs/console/${name}`);
  for (const [page, targets] of [
    ['README.md', ['docs/README.md']],
    ['docs/README.md', [...pagesOf('docs'), 'docs/decisions/README.md']],
    ['docs/decisions/README.md', pagesOf('docs/decisions')],
    ['docs/console.md', pictures],
  ] as const) {
    expect(targets).not.toEqual([]);
    expect(targets.filter((target) => !leadsTo(page).includes(target))).toEqual([]);
  }
});

it('a link that leads nowhere is seen, and one in code is none', () => {
  const text =
    '[a](none.md) [b](errors.md#none) [c](https://example.com/x) `[d](e.md)` [f](#g) [h](errors.md#error-codes)\n```\n[i](j.md)\n```\n';
  expect(linksOf('docs/errors.md', text).map(findProblem)).toEqual([
    'there is no docs/none.md',
    'docs/errors.md has no heading #none',
    'docs/errors.md has no heading #g',
    undefined,
  ]);
});
