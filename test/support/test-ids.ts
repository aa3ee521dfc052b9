import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/**
 * A test that a table refers to has an id at the end of its title, `is adopted, not repeated [create-answer-lost]`;
 * `npm test -- -t create-answer-lost` runs it. The id stays when the title or the file gets another name.
 */
export interface TestId {
  id: string;
  path: string;
  /** Without the id, as it is written: `%s` and `${…}` stay. */
  title: string;
  isSkipped: boolean;
}

interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

const root = join(import.meta.dirname, '../..');
const ENDS_IN_ID = /^(.*) \[([a-z0-9]+(?:-[a-z0-9]+)+)\]$/s;

/** The ids of all test files and shared suites. */
export function readTestIds(): TestId[] {
  const files = ['src', 'conformance', 'simulation', 'test', 'testing'].flatMap((room) =>
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)),
  );
  return files
    .filter((path) => /\.(test|suite|matrix|kill)\.ts$/.test(path))
    .flatMap((path) => testIdsOf(path, readFileSync(join(root, path), 'utf8')));
}

/** What is wrong with a reference, if anything. */
export function findProblem(id: string, all: readonly TestId[]): string | undefined {
  const tests = all.filter((test) => test.id === id);
  const [test] = tests;
  if (test === undefined) return `no test has the id [${id}]`;
  if (tests.length > 1)
    return `several tests have the id [${id}]: ${tests.map(({ path }) => path).join(', ')}`;
  return test.isSkipped ? `[${id}] in ${test.path} is skipped` : undefined;
}

/**
 * The ids in the titles of `it`, `test` and `describe`, and in the names of the cases of a table, which are items of an
 * array or keys of an object. What is skipped or still to be written counts as skipped, and so does a table that nothing
 * else uses; what runs only on some machines does not.
 */
export function testIdsOf(path: string, text: string): TestId[] {
  if (!/ \[[a-z0-9-]+\]['"`]/.test(text)) return [];
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const literals = new Map<number, string>();
  const skipped: Node[] = [];
  const tables: { name: string; node: Node }[] = [];
  const uses: { name: string; node: Node }[] = [];
  const addLiteral = (node: Node | null | undefined): void => {
    const value = node && textOf(node, text);
    if (value !== undefined && value !== null) literals.set(node?.start ?? 0, value);
  };
  new Visitor({
    CallExpression: (call) => {
      const [base = '', ...modifiers] = namesOf(call.callee as unknown as Node);
      if (!TEST_FUNCTIONS.has(base)) return;
      addLiteral(call.arguments[0] as unknown as Node);
      if (modifiers.some((name) => NOT_RUN.has(name))) skipped.push(call as unknown as Node);
    },
    ArrayExpression: ({ elements }) => {
      for (const element of elements) addLiteral(element as unknown as Node | null);
    },
    Property: ({ key }) => addLiteral(key as unknown as Node),
    VariableDeclarator: (declarator) => {
      const name = (declarator.id as unknown as Node)['name'];
      if (typeof name === 'string') tables.push({ name, node: declarator as unknown as Node });
    },
    Identifier: (identifier) => {
      uses.push({ name: identifier.name, node: identifier as unknown as Node });
    },
  }).visit(program);

  const isSkipped = (at: number): boolean => {
    if (skipped.some((call) => isWithin(at, call))) return true;
    const table = tables.filter(({ node }) => isWithin(at, node)).at(-1);
    if (table === undefined) return false;
    const others = uses.filter(({ name, node }) => name === table.name && !isWithin(node.start, table.node));
    return others.length > 0 && others.every(({ node }) => isSkipped(node.start));
  };
  return [...literals].flatMap(([start, literal]) => {
    const [, title, id] = ENDS_IN_ID.exec(literal) ?? [];
    return title === undefined || id === undefined ? [] : [{ id, path, title, isSkipped: isSkipped(start) }];
  });
}

const TEST_FUNCTIONS = new Set(['it', 'test', 'describe']);
const NOT_RUN = new Set(['skip', 'todo']);

const isWithin = (at: number, node: Node): boolean => node.start <= at && at < node.end;

/** The text of a string, as it is written where it is a template. */
function textOf(node: Node, text: string): string | undefined {
  if (node.type === 'TemplateLiteral') return text.slice(node.start + 1, node.end - 1);
  return node.type === 'Literal' && typeof node['value'] === 'string' ? node['value'] : undefined;
}

/** `it`, `each` of `it.each(…)`; `describe`, `concurrent` of `describe.concurrent`. */
function namesOf(callee: Node): string[] {
  if (callee.type === 'Identifier') return [String(callee['name'])];
  if (callee.type === 'MemberExpression')
    return [...namesOf(callee['object'] as Node), ...namesOf(callee['property'] as Node)];
  return callee.type === 'CallExpression' ? namesOf(callee['callee'] as Node) : [];
}
