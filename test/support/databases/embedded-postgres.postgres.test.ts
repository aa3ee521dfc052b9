import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import { until } from '../time/until.ts';

it.each([
  ['process.exitCode = 3', [3, null]],
  ["process.kill(process.pid, 'SIGKILL')", [null, 'SIGKILL']],
])('a server ends with the process that started it, and its folder is removed: %s', async (end, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-embedded-'));
  chmodSync(folder, 0o711);
  const module = new URL('./embedded-postgres.ts', import.meta.url).href;
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(module)});
    console.log((await startEmbedded()).url);
    ${end};`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, TMPDIR: folder },
  });
  const [url, errors, ended] = await Promise.all([
    text(starter.stdout),
    text(starter.stderr),
    once(starter, 'exit'),
  ]);
  expect([ended, errors]).toEqual([expected, '']);
  await until('the folder is removed', () => readdirSync(folder).length === 0);
  await expect(new Client({ connectionString: url.trim() }).connect()).rejects.toThrow('ECONNREFUSED');
  rmdirSync(folder);
});
