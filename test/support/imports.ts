import { posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/** What one file imports: paths from the root of the repository, and names of packages. */
export interface Imports {
  files: string[];
  packages: string[];
}

/**
 * Every module that a file names: imports and re-exports, those of types too, `import()` in code and in types,
 * and `require`.
 *
 * @throws {Error} if the file cannot be parsed, or names a module by an expression.
 */
export function importsOf(path: string, text: string): Imports {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const specifiers: string[] = [];
  const add = (source: { type: string; value?: unknown } | null): void => {
    if (source === null) return;
    if (typeof source.value !== 'string') throw new Error(`${path}: imports what an expression says`);
    specifiers.push(source.value);
  };
  new Visitor({
    ImportDeclaration: ({ source }) => add(source),
    ExportNamedDeclaration: ({ source }) => add(source),
    ExportAllDeclaration: ({ source }) => add(source),
    ImportExpression: ({ source }) => add(source),
    TSImportType: ({ source }) => add(source),
    TSExternalModuleReference: ({ expression }) => add(expression),
    CallExpression: ({ callee, arguments: args }) => {
      if (callee.type === 'Identifier' && callee.name === 'require') add(args[0] ?? null);
    },
  }).visit(program);
  return {
    files: specifiers.filter(isRelative).map((specifier) => posix.join(posix.dirname(path), specifier)),
    packages: specifiers.filter((specifier) => !isRelative(specifier)).map(packageName),
  };
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.');
}

function packageName(specifier: string): string {
  if (specifier.startsWith('node:')) return 'node:';
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
