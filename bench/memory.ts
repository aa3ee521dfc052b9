import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printLine } from '../src/runtime/print.ts';
import { type StoredInstances, storeInstances } from './orchestrator/stored-instances.ts';
import { BenchClient } from './support/client.ts';

/**
 * Measures the resident memory of `berth serve` from the package, the image and a checkout, after each instance was
 * read.
 */
const { values } = parseArgs({ options: { instances: { type: 'string', default: '100000' } } });
const main = join(import.meta.dirname, '../dist/main.js');
if (!existsSync(main)) throw new Error('There is no dist/main.js: run `npm run build` first.');

const ways: readonly { name: string; flags: readonly string[] }[] = [
  { name: 'the image', flags: ['--max-semi-space-size=8', main] },
  { name: 'the package', flags: [main] },
  { name: 'a checkout', flags: ['--max-semi-space-size=8', join(import.meta.dirname, '../src/main.ts')] },
];
const folder = mkdtempSync(join(tmpdir(), 'berth-memory-'));
try {
  const config = join(folder, 'berth.yaml');
  writeFileSync(config, 'rate_limits: { enabled: false }\nlog: { level: warn }\n');
  const stored = await storeInstances(`sqlite:${join(folder, 'berth.db')}`, Number(values.instances));
  for (const { name, flags } of ways)
    printLine(
      `${name}: ${await residentMb(flags, config, stored)} MB with ${stored.ids.length} instances, each read`,
    );
} finally {
  rmSync(folder, { recursive: true });
}

async function residentMb(
  flags: readonly string[],
  config: string,
  { database, apiKey, ids }: StoredInstances,
): Promise<number> {
  const args = [...flags, 'serve', '--config', config, '--database', database, '--port', '0', '--json'];
  const server = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit');
  try {
    const [ready] = await once(server.stdout, 'data');
    const client = new BenchClient({
      port: Number(new URL(JSON.parse(String(ready)).base_url).port),
      apiKey,
      connections: 16,
    });
    const left = [...ids];
    const take = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await client.read(`/v1/instances/${id}`);
    };
    await Promise.all(Array.from({ length: 16 }, take));
    client.close();
    // Waits until the garbage of the last round is collected.
    await pause(8_000);
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1000);
  } finally {
    server.kill('SIGTERM');
    await ended;
  }
}
