import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { findProblem, type TestId } from '../check/test-ids.ts';

const root = join(import.meta.dirname, '../..');
const readFile = (path: string): string => readFileSync(join(root, path), 'utf8');

const clauseSchema = z.strictObject({
  id: z.string().regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/),
  section: z.string().min(1),
  says: z.string().min(1),
  endpoint: z.string().optional(),
  properties: z.array(z.string()).min(1).optional(),
  about: z.string().min(1).optional(),
  settled: z.string().min(1).optional(),
  shownBy: z
    .array(z.string().regex(/^[a-z0-9-]+$/))
    .min(1)
    .optional(),
});
/** A row, rule, item or sentence of M:, and what shows that it holds. */
export type Clause = z.infer<typeof clauseSchema>;

/** The clauses of coverage.yaml, in the order of M:. */
export function readClauses(): Clause[] {
  return z.array(clauseSchema).parse(parse(readFile('test/marketplace/coverage.yaml')));
}

/** What is wrong with what is said to show a clause, and with the properties that it names. */
export function findProblems(clause: Clause, testIds: readonly TestId[], document: Document): string[] {
  const { shownBy = [], about, settled, properties = [] } = clause;
  if (shownBy.length === 0 && about === undefined && settled === undefined)
    return ['it has neither a test, nor a reason, nor a place where it is settled'];
  const isSettled = settled === undefined || existsSync(join(root, settled));
  return [
    ...(isSettled ? [] : [`there is no file ${settled}`]),
    ...shownBy.flatMap((id) => findProblem(id, testIds) ?? []),
    ...properties.filter((property) => !document.has(property)).map((property) => `no property ${property}`),
  ];
}

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** What of openapi/marketplace.json the clauses are held against. */
export class Document {
  readonly #schemas: Record<string, Schema>;
  /** Such as `GET /api/providers`. */
  readonly endpoints: readonly string[];

  constructor(text = readFile('openapi/marketplace.json')) {
    const { paths, components } = JSON.parse(text);
    this.#schemas = components.schemas;
    this.endpoints = Object.entries(paths as Record<string, object>).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
  }

  /** `Team.members.userId`: lists are gone through. */
  has(property: string): boolean {
    const [name = '', ...path] = property.split('.');
    let schema: Schema | undefined = this.#schemas[name];
    for (const key of path) schema = this.#open(schema)?.properties?.[key];
    return schema !== undefined;
  }

  #open(schema: Schema | undefined): Schema | undefined {
    if (schema?.items !== undefined) return this.#open(schema.items);
    const name = schema?.$ref?.split('/').at(-1);
    return name === undefined ? schema : this.#open(this.#schemas[name]);
  }
}

/** Each clause with the tests that show it, as a page in Markdown one folder below the root. */
export function toPage(clauses: readonly Clause[], testIds: readonly TestId[]): string {
  const sections = [...new Set(clauses.map(({ section }) => section))];
  const shown = clauses.filter(({ shownBy }) => shownBy !== undefined);
  const tests = new Set(shown.flatMap(({ shownBy = [] }) => shownBy));
  return [
    '# What the marketplace API says, and what shows it',
    '',
    'Each row, rule, item and sentence of M: (the marketplace API) with the tests that show it, from',
    '[test/marketplace/coverage.yaml](../test/marketplace/coverage.yaml).',
    '',
    `${clauses.length} clauses: ${shown.length} shown by ${tests.size} tests and cases; the others have nothing to test.`,
    ...sections.flatMap((section) => toTable(section, clauses, testIds)),
    '',
  ].join('\n');
}

function toTable(section: string, clauses: readonly Clause[], testIds: readonly TestId[]): string[] {
  const rows = clauses.filter((clause) => clause.section === section).map((clause) => toRow(clause, testIds));
  return ['', `## ${section}`, '', '| clause | M: says | shown by |', '|---|---|---|', ...rows];
}

function toRow({ id, says, shownBy = [], about, settled }: Clause, testIds: readonly TestId[]): string {
  const shows = [
    ...(about === undefined ? [] : [about]),
    ...(settled === undefined ? [] : [`settled in [${settled.split('/').at(-1)}](../${settled})`]),
    ...shownBy.map((test) => toReference(test, testIds)),
  ];
  return `| ${id} | ${toCell(says)} | ${shows.map(toCell).join('<br>')} |`;
}

function toReference(id: string, testIds: readonly TestId[]): string {
  const test = testIds.find((one) => one.id === id);
  return test === undefined ? `\`${id}\`` : `\`${id}\`: ${test.title} (${test.path})`;
}

/** `<` begins a tag outside of code. */
function toCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/<(?=\w+>\.?)(?![^`]*`)/g, '&lt;');
}
