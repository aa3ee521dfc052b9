import { posix } from 'node:path';
import { type Expression, parseSync, Visitor } from 'oxc-parser';

/** What one file imports: paths from the root of the repository, and names of packages. */
export interface Imports {
  files: string[];
  packages: string[];
}

/** Only for these the syntax tree is read, which takes twenty times as long as the list of a module's statements. */
const IS_CALLED = /\b(?:import|require)\s*\(/;

/**
 * Every module that a file names: imports and re-exports, those of types too, `import()` in code and in types,
 * and `require`.
 *
 * @throws {Error} if the file cannot be parsed, or names a module by an expression.
 */
export function importsOf(path: string, text: string): Imports {
  const parsed = parseSync(path, text);
  if (parsed.errors.length > 0) throw new Error(`${path}: ${parsed.errors[0]?.message}`);
  const { staticImports, staticExports } = parsed.module;
  const specifiers = new Set([
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.flatMap((entry) => entry.moduleRequest?.value ?? [])),
  ]);
  const add = (source: Expression | { type: 'SpreadElement' } | undefined): void => {
    if (source?.type !== 'Literal' || typeof source.value !== 'string')
      throw new Error(`${path}: imports what an expression says`);
    specifiers.add(source.value);
  };
  if (IS_CALLED.test(text))
    new Visitor({
      ImportExpression: ({ source }) => add(source),
      TSImportType: ({ source }) => add(source),
      TSExternalModuleReference: ({ expression }) => add(expression),
      CallExpression: ({ callee, arguments: [source] }) => {
        if (callee.type === 'Identifier' && callee.name === 'require') add(source);
      },
    }).visit(parsed.program);
  const [files, packages] = [
    [...specifiers].filter(isRelative),
    [...specifiers].filter((one) => !isRelative(one)),
  ];
  return {
    files: files.map((specifier) => posix.join(posix.dirname(path), specifier)),
    packages: [...new Set(packages.map(packageName))],
  };
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.');
}

function packageName(specifier: string): string {
  if (specifier.startsWith('node:')) return 'node:';
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
