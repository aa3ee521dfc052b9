import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../support/http/http-client.ts';
import { startServing, temporaryFolder } from '../support/processes/process.ts';
import { quickReconcile, writeTimes } from '../support/processes/quick-times.ts';

const MACHINES = 20_000;
const DRAIN_S = 3;

/** A driver in a file. `list` is the body of a function of how often it was called, which returns an answer, or nothing. */
function writeDriver(folder: string, list: string): string {
  const capabilities = { stop: true, resume: true, create_visible_within_ms: 0, keeps_notes: true };
  const info = { protocol: 1, name: 'many', concurrency: 16, capabilities };
  writeFileSync(
    join(folder, 'driver.mjs'),
    `import { createInterface } from 'node:readline';
let calls = 0;
const list = (call) => {${list}};
process.on('SIGTERM', () => {});
setInterval(() => {}, 1000);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const result = method === 'info' ? ${JSON.stringify(info)} : method === 'list' ? list(++calls) : { answer: 'gone' };
  if (result !== undefined) process.stdout.write(JSON.stringify({ id, result }) + '\\n');
});
`,
  );
  const config = join(folder, 'berth.yaml');
  writeFileSync(
    config,
    `platform: { driver: exec, command: [${process.execPath}, driver.mjs] }
server: { drain_s: ${DRAIN_S} }
log_level: info
database: sqlite:data/berth.db
`,
  );
  writeTimes(config, { reconcile: quickReconcile });
  return config;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('20,000 machines that nobody knows: it answers, raises a hundred alarms and one for all, and ends at once [many-unknown-machines]', async () => {
  using folder = temporaryFolder();
  const list = `const ref = (index) => 'berth-inst-' + String(index).padStart(32, '0');
    const of = (_, index) => ({ ref: ref(index), power: 'running', created_at: 1 });
    return { answer: 'listed', items: Array.from({ length: ${MACHINES} }, of) };`;
  await using berth = await startServing(['--config', writeDriver(folder.path, list)], { cwd: folder.path });
  const health = new URL('/healthz', berth.baseUrl);
  const seen = (text: string) => berth.stderr.split(text).length - 1;
  await until(
    async () => {
      expect((await fetch(health)).status).toBe(200);
      return seen('"action":"log"') === 100 && seen('has no instance, or its instance ended') === 101;
    },
    () => `${seen('"action":"log"')} alarms: ${berth.stderr.slice(-1_000)}`,
  );
  const lines = readFileSync(join(folder.path, 'data', 'orphan_machine-default.txt'), 'utf8').split('\n');
  expect(lines).toHaveLength(MACHINES + 1);
  expect(await berth.end('SIGTERM')).toMatchObject({ code: 0 });
});

it('ends within drain_s while the driver answers nothing any more, and does not end itself [close-is-bounded]', async () => {
  using folder = temporaryFolder();
  const list = `if (call === 1) return { answer: 'listed', items: [] }; console.error('list ' + call + ' of ' + process.pid);`;
  await using berth = await startServing(['--config', writeDriver(folder.path, list)], { cwd: folder.path });
  await until(
    async () => berth.stderr.includes('list 2'),
    () => berth.stderr,
  );
  expect(await berth.end('SIGTERM')).toMatchObject({ code: 0 });
  expect(berth.stderr).toContain('still run at the end of server.drain_s');
  const pid = Number(/list 2 of (\d+)/.exec(berth.stderr)?.[1]);
  await until(
    async () => !isAlive(pid),
    () => 'the driver outlives it',
  );
});
