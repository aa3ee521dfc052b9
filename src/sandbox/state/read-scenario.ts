import { readFileSync } from 'node:fs';
import { CST, type Document, isScalar, Lexer, LineCounter, parseDocument, visit } from 'yaml';
import { type Issue, toSentence } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { Fatal } from '../../ports/errors.ts';
import { type Scenario, scenarioSchema } from './scenario-format.ts';

const MAX_DEPTH = 200;

/** Parses a scenario in YAML, which includes JSON. Returns the scenario or its problems. */
export function parseScenario(text: string): { scenario: Scenario } | { issues: Issue[] } {
  const lineCounter = new LineCounter();
  // Of the library's own checks, those of keys and its excerpts take minutes for some texts of one megabyte.
  const options = { uniqueKeys: false, prettyErrors: false, logLevel: 'error', lineCounter } as const;
  const document = parseDocument(text, options);
  const [error = repeatedKey(document)] = document.errors.map(({ message, pos: [at] }) => ({ message, at }));
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.at);
    return { issues: [{ path: '', message: `${error.message} at line ${line}, column ${col}` }] };
  }
  return checkScenario(document);
}

function repeatedKey(document: Document): { message: string; at: number } | undefined {
  let found: { message: string; at: number } | undefined;
  visit(document, {
    Map(_key, { items }) {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) found ??= { message: `repeated key ${key.value}`, at: key.range?.[0] ?? 0 };
        keys.add(key.value);
      }
    },
  });
  return found;
}

function checkScenario(document: Document): ReturnType<typeof parseScenario> {
  let data: unknown;
  try {
    data = document.toJS();
  } catch (error) {
    // Too many aliases.
    return { issues: [{ path: '', message: (error as Error).message }] };
  }
  const { data: scenario, error } = scenarioSchema.safeParse(data);
  return scenario === undefined ? { issues: toIssues({ error, data }) } : { scenario };
}

/** Whether YAML has more than 200 levels: its parser recurses, and takes seconds for some thousand. */
export function isYamlNestedTooDeeply(yaml: string): boolean {
  let open = 0;
  // Indentation alone makes few levels in a text of limited size. Several indicators may stand in one line.
  let inLine = 0;
  for (const token of new Lexer().lex(yaml)) {
    const type = CST.tokenType(token);
    if (type === 'flow-seq-start' || type === 'flow-map-start') open++;
    else if (type === 'flow-seq-end' || type === 'flow-map-end') open--;
    else if (type === 'seq-item-ind' || type === 'explicit-key-ind') inLine++;
    else if (type === 'newline') inLine = 0;
    if (open + inLine > MAX_DEPTH) return true;
  }
  return false;
}

/** @throws {Fatal} if the file cannot be read, or is not a scenario */
export function readScenario(file: string): Scenario {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(`The scenario ${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const read = parseScenario(text);
  if ('scenario' in read) return read.scenario;
  throw new Fatal(`${file} is not a valid scenario: ${read.issues.map(toSentence).join('; ')}.`);
}
