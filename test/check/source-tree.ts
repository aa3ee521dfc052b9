import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Imports, importsOf } from '../../build/imports.ts';

const root = join(import.meta.dirname, '../..');

/** A source of the repository, by its path from the root. It is read once in a process, and parsed at most once. */
export class Source {
  readonly path: string;
  readonly text: string;
  #imports: Imports | undefined;

  constructor(path: string, text = readFileSync(join(root, path), 'utf8')) {
    this.path = path;
    this.text = text;
  }

  get imports(): Imports {
    this.#imports ??= importsOf(this.path, this.text);
    return this.#imports;
  }

  /** A test, or what only tests import. */
  get isForTests(): boolean {
    return isForTests(this.path);
  }
}

/** Tests, shared suites, fixtures and simulations may import anything, and are imported by their own kind only. */
export const isForTests = (path: string): boolean =>
  /\.(test|suite|fixture|check)\.ts$/.test(path) || /^(test|simulation)\//.test(path);

/** Every source, in the order of their paths. All checks share them. */
export const sources: readonly Source[] = globSync(
  '{src,conformance,simulation,test,bench,build}/**/*.{ts,mts,cts,tsx,js,mjs}',
  { cwd: root },
)
  .sort()
  .map((path) => new Source(path));

/** The sources below these folders, which must not be empty: a check that saw no files has checked nothing. */
export function sourcesIn(...folders: string[]): Source[] {
  return folders.flatMap((folder) => {
    const found = sources.filter(({ path }) => path.startsWith(`${folder}/`));
    if (found.length === 0) throw new Error(`there are no sources in ${folder}/`);
    return found;
  });
}
