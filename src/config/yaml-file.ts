import { hash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  visit,
} from 'yaml';
import { EXPECTED_PLAIN_TEXT, isPlainText } from '../ports/plain-text.ts';
import { ConfigError, type Finding, type IssuePath, type Position, type YamlFile } from './findings.ts';
import { toYamlFaults } from './yaml-faults.ts';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_ALIASES = 100;

/**
 * Reads YAML 1.2 with a mapping as its root. An empty file is an empty mapping.
 * @throws {ConfigError} if it cannot be read or is not valid
 */
export function readYamlFile(file: string): YamlFile {
  const bytes = readBytes(file);
  const parsed = parsedAtBuild(bytes);
  if (parsed === undefined) return parseYaml(file, bytes);
  return { file, value: parsed, locate: (...place) => parseYaml(file, bytes).locate(...place) };
}

/** The folder of the values of bundled files, in the package. The name of each is {@link digestOfYaml} of its file. */
export const PARSED_YAML = 'parsed-yaml';

export function digestOfYaml(bytes: Buffer): string {
  return `${hash('sha256', bytes)}.json`;
}

/** The value of a file whose bytes are those of a bundled file: the build has parsed it. */
function parsedAtBuild(bytes: Buffer): Record<string, unknown> | undefined {
  const file = join(import.meta.dirname, PARSED_YAML, digestOfYaml(bytes));
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

function parseYaml(file: string, bytes: Buffer): YamlFile {
  const text = decode(file, bytes);
  const lineCounter = new LineCounter();
  const document = parse(file, text, lineCounter);
  const faults = [...toYamlFaults([...document.errors, ...document.warnings]), ...unplainTextIn(document)];
  if (faults.length > 0)
    throw new ConfigError(
      faults.map(({ offset, message }) => ({
        file,
        ...positionOf(lineCounter, offset),
        path: '',
        message,
      })),
    );
  return {
    file,
    value: toMapping(file, document),
    locate: (path, at) => locate(document, lineCounter, path, at),
  };
}

/** An escape such as "\\0" or "\\ud800" makes a text that no database keeps. */
function unplainTextIn(document: Document): { offset: number; message: string }[] {
  const faults: { offset: number; message: string }[] = [];
  visit(document, {
    Scalar(_key, { value, range }) {
      if (typeof value === 'string' && !isPlainText(value))
        faults.push({ offset: range?.[0] ?? 0, message: EXPECTED_PLAIN_TEXT });
    },
  });
  return faults;
}

function wholeFile(file: string, message: string): ConfigError {
  return new ConfigError([{ file, line: undefined, column: undefined, path: '', message } satisfies Finding]);
}

function readBytes(file: string): Buffer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const stat = fstatSync(descriptor);
    if (stat.isDirectory()) throw wholeFile(file, 'expected a YAML file, got a directory');
    if (!stat.isFile() && !stat.isFIFO()) throw wholeFile(file, 'expected a YAML file, got a device');
    if (stat.size > MAX_FILE_BYTES)
      throw wholeFile(file, `expected at most ${MAX_FILE_BYTES} bytes, got ${stat.size}`);
    return readFileSync(descriptor);
  } catch (error) {
    throw error instanceof ConfigError ? error : wholeFile(file, unreadable(error));
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function unreadable(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'the file cannot be read: permission denied';
  return `the file cannot be read: ${(error as Error).message}`;
}

function decode(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw wholeFile(file, 'expected UTF-8 text');
  }
}

function parse(file: string, text: string, lineCounter: LineCounter): Document.Parsed<ParsedNode> {
  try {
    return parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      stringKeys: true,
      uniqueKeys: true,
      version: '1.2',
    });
  } catch (error) {
    throw wholeFile(file, `cannot be parsed: ${(error as Error).message}`);
  }
}

function toMapping(file: string, document: Document.Parsed<ParsedNode>): Record<string, unknown> {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
    // Aliases can make a value that contains itself. Later code cannot handle that.
    JSON.stringify(value);
  } catch (error) {
    throw wholeFile(file, unfoldingProblem((error as Error).message));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError([
      { file, line: 1, column: 1, path: '', message: 'expected a mapping of keys to values' },
    ]);
  return value as Record<string, unknown>;
}

function unfoldingProblem(reason: string): string {
  return reason.startsWith('Unresolved alias')
    ? reason
    : `expected finite values: its aliases expand to more than ${MAX_ALIASES} nodes, or without end`;
}

function positionOf(lineCounter: LineCounter, offset: number): Position {
  const { line, col } = lineCounter.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

function locate(
  document: Document.Parsed<ParsedNode>,
  lineCounter: LineCounter,
  path: IssuePath,
  at: 'key' | 'value',
): Position {
  let node: unknown = document.contents;
  let position: Position = { line: 1, column: 1 };
  for (const part of path) {
    const found = child(isAlias(node) ? node.resolve(document) : node, part);
    if (found === undefined) return position;
    position = positionOf(lineCounter, found.offset);
    node = found.value;
  }
  const value = startOf(node);
  const valuePosition = value === undefined ? position : positionOf(lineCounter, value);
  // A block that begins on the line after its key has the position of its key.
  return at === 'value' && valuePosition.line === position.line ? valuePosition : position;
}

/** The value under `part`, and the offset of its key (in a mapping) or of the value (in a sequence). */
function child(node: unknown, part: PropertyKey): { offset: number; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
    const offset = startOf(pair?.key);
    return pair === undefined || offset === undefined ? undefined : { offset, value: pair.value };
  }
  if (isSeq(node) && typeof part === 'number') {
    const value = node.items[part];
    const offset = startOf(value);
    return offset === undefined ? undefined : { offset, value };
  }
  return undefined;
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] | null } | undefined)?.range?.[0];
}
