import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';

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
    plugins: [withoutNativeParts, withoutOtherLanguages],
    onLog(_level, { message }) {
      throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: folder,
    chunkFileNames: '[name]-[hash].js',
    sourcemap: true,
    // A stack needs places, not texts.
    sourcemapExcludeSources: true,
    // Sources stay in memory while they run.
    comments: false,
  });
  await bundle.close();
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk');
  for (const { fileName } of chunks) escapeLetters(join(folder, fileName));
  return chunks;
}

/** A source with one letter beyond Latin-1 takes two bytes for each of its letters, for as long as it is loaded. */
function escapeLetters(file: string): void {
  const code = readFileSync(file, 'utf8');
  if (/(?<!\\)(\\\\)*\\[^\0-\xff]/.test(code))
    throw new Error(`${file} has a backslash before a letter beyond Latin-1: escape that letter`);
  const escaped = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(file, code.replace(/[^\0-\xff]/g, escaped));
}
