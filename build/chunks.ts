import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { breakLines } from './break-lines.ts';

/** What stays outside: the one package with a native module, what is loaded on a terminal alone, and the user's own vitest. */
const EXTERNAL = /^(node:.+|(better-sqlite3|pino-pretty|vitest)(\/.+)?)$/;
/** Native parts that libraries look for and can do without. */
const OPTIONAL_NATIVE = /(\.node|^cpu-features|^pg-native|^pg-cloudflare)$/;
const MISSING = '\0missing';

/** A library finds its native parts missing, also where another package has brought them. */
const withoutNativeParts: Plugin = {
  name: 'without native parts',
  resolveId: (id) => (OPTIONAL_NATIVE.test(id) ? MISSING : null),
  load: (id) =>
    id === MISSING
      ? "throw Object.assign(new Error('not in this package'), { code: 'MODULE_NOT_FOUND' });"
      : null,
};

/** Messages are in English: the others would be a seventh of what a sandbox loads. */
const withoutOtherLanguages: Plugin = {
  name: 'without other languages',
  load: (id) => (id.endsWith('/zod/v4/locales/index.js') ? "export { default as en } from './en.js';" : null),
};

/** Clients need its connections alone: its fetch, WebSocket and mocks would be two thirds of it. */
const ofUndici = `
import Agent from './lib/dispatcher/agent.js';
import Dispatcher from './lib/dispatcher/dispatcher.js';
import api from './lib/api/index.js';
export { Agent };
export { default as buildConnector } from './lib/core/connect.js';
Object.assign(Dispatcher.prototype, api);
`;
const onlyConnections: Plugin = {
  name: 'only connections of undici',
  load: (id) =>
    id.endsWith('/undici/index.js') ? { code: ofUndici, moduleType: 'js', moduleSideEffects: true } : null,
};

/** A chunk with one letter beyond Latin-1 takes two bytes for each of its letters, for as long as it is loaded. */
const escapedLetters: Plugin = {
  name: 'escaped letters',
  transform(code, id) {
    if (/(?<!\\)(\\\\)*\\[^\0-\xff]/.test(code))
      throw new Error(`${id} has a backslash before a letter beyond Latin-1: escape that letter`);
    const toEscape = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
    // Lines stay as they are: no other map is needed.
    return { code: code.replace(/[^\0-\xff]/g, toEscape), map: null };
  },
};

/** Stacks name functions and classes. */
const keepNames = { function: true, class: true };

/**
 * Makes chunks of these entries (name → source file) and of all that they import; each with its source map, and all in
 * one folder, so that `import.meta.url` of any is beside the others. What is imported dynamically stays lazy.
 */
export async function writeChunks(
  input: Readonly<Record<string, string>>,
  folder: string,
): Promise<OutputChunk[]> {
  const bundle = await rolldown({
    input,
    platform: 'node',
    external: EXTERNAL,
    transform: {
      // The conformance suite runs on Node 22 too.
      target: 'node22',
      define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    },
    plugins: [withoutNativeParts, withoutOtherLanguages, onlyConnections, escapedLetters],
    onLog(_level, { message }) {
      throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: folder,
    chunkFileNames: '[name]-[hash].js',
    // Only `src/runtime/sources.ts` reads them.
    sourcemap: 'hidden',
    // A stack needs places, not texts.
    sourcemapExcludeSources: true,
    comments: false,
    minify: {
      compress: { target: 'node22', keepNames },
      mangle: { keepNames },
      // Strings; the letters of a tagged template stay as they are in the source.
      codegen: { asciiOnly: true },
    },
  });
  await bundle.close();
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk');
  for (const chunk of chunks) writeChunk(chunk, folder);
  return chunks;
}

/** Replaces what rolldown wrote of a chunk. */
function writeChunk({ fileName, code, map }: OutputChunk, folder: string): void {
  if (/[^\0-\xff]/.test(code)) throw new Error(`${fileName} has a letter beyond Latin-1`);
  // A chunk that only exports others has none.
  if (map === null) return;
  const broken = breakLines(code, map);
  writeFileSync(join(folder, fileName), broken.code);
  writeFileSync(join(folder, `${fileName}.map.gz`), gzipSync(JSON.stringify({ version: 3, ...broken.map })));
  rmSync(join(folder, `${fileName}.map`));
}
