import { mkdtempSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { writeChunks } from '../../build/chunks.ts';
import { runBerth } from '../support/processes/process.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const source = join(root, 'test/package/log-errors.ts');

interface ErrorLine {
  message: string;
  stack: string[];
}

/** What it logs of its errors: the message, and the file and line where each was thrown. */
async function logged(entry: string): Promise<{ message: string; place: string }[]> {
  const { stderr } = await runBerth([], { entry });
  return stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).err as ErrorLine)
    .map(({ message, stack }) => {
      const [, file = '', line] = /\(?(?:file:\/\/)?(\/[^)]*):(\d+):\d+\)?$/.exec(stack[0] ?? '') ?? [];
      return { message, place: `${relative(root, file)}:${line}` };
    });
}

it('the log of the package names the same places as that of a checkout, and withholds the same messages', async () => {
  // Beside src/, as dist/ is.
  const folder = mkdtempSync(join(root, 'dist-'));
  try {
    await writeChunks({ main: source }, folder);
    const [own, library] = await logged(source);
    expect(own).toEqual({
      message: expect.stringContaining('missing.yaml'),
      place: expect.stringMatching(/^src\/config\//),
    });
    expect(library).toEqual({
      message: expect.stringMatching(/^\[message withheld/),
      place: expect.stringMatching(/^node_modules\/yaml\//),
    });
    const bundled = await logged(join(folder, 'main.js'));
    expect(bundled[0]).toEqual(own);
    // The bundler takes another build of the library.
    expect(bundled[1]).toEqual({
      message: library?.message,
      place: expect.stringMatching(/^node_modules\/yaml\//),
    });
    // Without its map the place is not known, and so no message is let through.
    rmSync(join(folder, 'main.js.map.gz'));
    expect((await logged(join(folder, 'main.js'))).map(({ message }) => message)).toEqual([
      library?.message,
      library?.message,
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
