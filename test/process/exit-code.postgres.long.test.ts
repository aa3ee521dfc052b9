import { execFile } from 'node:child_process';
import { expect, it } from 'vitest';

it.each([
  ['process.exitCode = 0', 0],
  ['process.exitCode = 3', 3],
  ['setTimeout(() => process.exit(0))', 0],
  ['setTimeout(() => process.exit(3))', 3],
])('a process that had a PostgreSQL of the tests ends as it would without: %s', async (end, expected) => {
  const module = new URL('../support/databases/postgres.ts', import.meta.url).href;
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(module)});
    const { stop } = await startEmbedded();
    await stop();
    ${end};`;
  const ended = await new Promise((resolve) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    );
  });
  expect(ended).toEqual({ code: expected, stderr: '' });
});
