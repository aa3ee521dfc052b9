import { parseSync, Visitor } from 'oxc-parser';

interface Node {
  type: string;
  [key: string]: unknown;
}

/**
 * Every title that a file gives to `it`, `test` or `describe`, as it is written: `%s` and `${…}` stay. What is skipped
 * or still to be written is no test, nor is what stands in it; what runs only on some machines is one.
 */
export function testTitlesOf(path: string, text: string): Set<string> {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const titles = new Set<string>();
  let endOfSkipped = 0;
  new Visitor({
    CallExpression: ({ callee, arguments: args, start, end }) => {
      const title = args[0] as Node | undefined;
      const [root = '', ...modifiers] = namesOf(callee as unknown as Node);
      if (title === undefined || start < endOfSkipped || !names.has(root)) return;
      if (modifiers.some((name) => unrun.has(name))) {
        endOfSkipped = end;
        return;
      }
      if (title.type === 'Literal' && typeof title['value'] === 'string') titles.add(title['value']);
      if (title.type === 'TemplateLiteral')
        titles.add(text.slice(Number(title['start']) + 1, Number(title['end']) - 1));
    },
  }).visit(program);
  return titles;
}

const names = new Set(['it', 'test', 'describe']);
const unrun = new Set(['skip', 'todo']);

/** `it`, `each` of `it.each(…)`; `describe`, `concurrent` of `describe.concurrent`. */
function namesOf(callee: Node): string[] {
  if (callee.type === 'Identifier') return [String(callee['name'])];
  if (callee.type === 'MemberExpression')
    return [...namesOf(callee['object'] as Node), ...namesOf(callee['property'] as Node)];
  return callee.type === 'CallExpression' ? namesOf(callee['callee'] as Node) : [];
}
