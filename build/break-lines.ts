import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';
import { parseSync, Visitor } from 'oxc-parser';

interface LineMap {
  sources: readonly string[];
  mappings: string;
}

/** A line ends before the first statement after this many letters. */
const LINE_CHARS = 200;

/**
 * Breaks minified code into lines, so that an uncaught error does not print the whole file. The new map names files and
 * lines, without columns.
 *
 * @throws {Error} if the code cannot be parsed
 */
export function breakLines(code: string, { sources, mappings }: LineMap): { code: string; map: LineMap } {
  const given = decode(mappings);
  const breaks = breaksOf(code);
  const texts: string[] = [];
  const segments: SourceMapSegment[][] = [];
  let start = 0;
  for (const [number, line] of code.split('\n').entries()) {
    const end = start + line.length;
    const cuts = [start, ...breaks.filter((at) => at > start && at < end), end];
    for (const [index, to] of cuts.slice(1).entries()) {
      const [from, lineStart] = [cuts[index] ?? 0, start];
      texts.push(code.slice(from, to));
      const within = ([column]: SourceMapSegment) => column >= from - lineStart && column < to - lineStart;
      segments.push(oncePerLine((given[number] ?? []).filter(within), from - lineStart));
    }
    start = end + 1;
  }
  return { code: texts.join('\n'), map: { sources, mappings: encode(segments) } };
}

/** Keeps the first segment of each source line, and takes `offset` from its column. */
function oncePerLine(segments: readonly SourceMapSegment[], offset: number): SourceMapSegment[] {
  const kept: SourceMapSegment[] = [];
  for (const [column, source, line] of segments) {
    const last = kept.at(-1);
    if (source !== undefined && line !== undefined && (last?.[1] !== source || last[2] !== line))
      kept.push([column - offset, source, line, 0]);
  }
  return kept;
}

/** Places between statements and between parts of a list, each far enough from the one before. */
function breaksOf(code: string): number[] {
  const { program, errors } = parseSync('chunk.js', code);
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  const starts: number[] = [];
  // Not before the first: it may follow a `return` on the same line.
  const add = (parts: readonly { start: number }[]): void => {
    for (const { start } of parts.slice(1)) starts.push(start);
  };
  new Visitor({
    Program: ({ body }) => add(body),
    BlockStatement: ({ body }) => add(body),
    ClassBody: ({ body }) => add(body),
    VariableDeclaration: ({ declarations }) => add(declarations),
    SequenceExpression: ({ expressions }) => add(expressions),
    ObjectExpression: ({ properties }) => add(properties),
  }).visit(program);
  const breaks: number[] = [];
  for (const start of starts.sort((a, b) => a - b))
    if (start - (breaks.at(-1) ?? 0) >= LINE_CHARS) breaks.push(start);
  return breaks;
}
