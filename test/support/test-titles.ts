import { parseSync, Visitor } from 'oxc-parser';

interface Node {
  type: string;
  [key: string]: unknown;
}

/** Every title that a file gives to `it`, `test` or `describe`, as it is written: `%s` and `${…}` stay. */
export function testTitlesOf(path: string, text: string): Set<string> {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const titles = new Set<string>();
  new Visitor({
    CallExpression: ({ callee, arguments: args }) => {
      const title = args[0] as Node | undefined;
      if (title === undefined || !names.has(rootOf(callee as unknown as Node))) return;
      if (title.type === 'Literal' && typeof title['value'] === 'string') titles.add(title['value']);
      if (title.type === 'TemplateLiteral')
        titles.add(text.slice(Number(title['start']) + 1, Number(title['end']) - 1));
    },
  }).visit(program);
  return titles;
}

const names = new Set(['it', 'test', 'describe']);

/** `it` of `it`, `it.each(…)`, `describe.concurrent`. */
function rootOf(callee: Node): string {
  if (callee.type === 'Identifier') return String(callee['name']);
  if (callee.type === 'MemberExpression') return rootOf(callee['object'] as Node);
  return callee.type === 'CallExpression' ? rootOf(callee['callee'] as Node) : '';
}
