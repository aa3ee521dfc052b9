import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

/** The package runs chunks, which are in one folder, each with its source map. A checkout runs the sources. */
const isBundled = import.meta.url.endsWith('.js');
const chunkFolder = new URL('./', import.meta.url).href;
/** A location in a chunk, as a stack names it: file, line and column. */
const chunkPlace = new RegExp(`${chunkFolder.replace(/\W/g, '\\$&')}([\\w.-]+\\.js):(\\d+):(\\d+)`, 'g');
const sourceMaps = new Map<string, SourceMap | undefined>();

/** The folder of Berth's own sources, as stacks name it. */
export const SOURCE_FOLDER = fileURLToPath(new URL(isBundled ? '../src/' : '../', import.meta.url));

/**
 * Replaces each location in a chunk by the source file and line. Node's own option would read every source map at
 * startup; this reads one when a stack needs it.
 */
export function withSourcePlaces(stack: string): string {
  if (!isBundled) return stack;
  return stack.replace(chunkPlace, (place: string, chunk: string, line: string, column: string) => {
    const origin = sourceMapOf(chunk)?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !('fileName' in origin)) return place;
    const file = fileURLToPath(new URL(origin.fileName, chunkFolder));
    return `${file}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

/** Makes every stack of this process name sources. Only for a program, which owns its process. */
export function nameSourcesInStacks(): void {
  if (!isBundled) return;
  Error.prepareStackTrace = (error, frames) =>
    withSourcePlaces([Error.prototype.toString.call(error), ...frames].join('\n    at '));
}

function sourceMapOf(chunk: string): SourceMap | undefined {
  if (!sourceMaps.has(chunk)) sourceMaps.set(chunk, readSourceMap(chunk));
  return sourceMaps.get(chunk);
}

/** Undefined if it is missing: the stack then names the chunk. */
function readSourceMap(chunk: string): SourceMap | undefined {
  try {
    const map = gunzipSync(readFileSync(new URL(`${chunk}.map.gz`, chunkFolder)));
    return new SourceMap(JSON.parse(map.toString()));
  } catch {
    return undefined;
  }
}
