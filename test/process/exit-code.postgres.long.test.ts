import { execFile } from 'node:child_process';
import { expect, it } from 'vitest';

it('a process that had a PostgreSQL of the tests ends with the exit code that it was given', async () => {
  const module = new URL('../support/postgres.ts', import.meta.url).href;
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(module)});
    const { stop } = await startEmbedded();
    await stop();
    process.exitCode = 3;`;
  const code = await new Promise((resolve) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], (error) => resolve(error?.code ?? 0));
  });
  expect(code).toBe(3);
});
