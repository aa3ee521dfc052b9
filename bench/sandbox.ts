import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, printTable } from '../src/runtime/print.ts';
import { COSTS, STUCK } from './sandbox/costs.ts';
import { measureHttpLoad } from './sandbox/http-load.ts';

// Measures the startup time, memory and CPU of the sandbox, and the startup of other test doubles: `npm run build && npm run
// bench:sandbox`. `--peers` installs these from the npm registry into a folder of its own.

const ROOT = new URL('..', import.meta.url).pathname;
const ROUNDS = 5;
const LONGEST_START_MS = 30_000;
const OPENAPI = join(ROOT, 'openapi/orchestrator.v1.json');

interface Figures {
  firstMs: number;
  memoryMb: number;
}

/** In one process: time after the import, and memory above that of a process without imports. */
const IN_PROCESS = `
const before = process.memoryUsage().rss;
const { createSandbox } = await import('${join(ROOT, 'dist/sandbox.js')}');
const begunAt = performance.now();
const sandbox = await createSandbox();
const { baseUrl, apiKey } = sandbox.provider('a');
const headers = { authorization: 'Bearer ' + apiKey };
const { status } = await sandbox.fetch(baseUrl + '/availability', { headers });
if (status !== 200) throw new Error('it answers ' + status);
const firstMs = performance.now() - begunAt;
const memoryMb = (process.memoryUsage().rss - before) / 2 ** 20;
console.log(JSON.stringify({ firstMs, memoryMb }));
await sandbox.close();`;

const MONTH = `
const { createSandbox } = await import('${join(ROOT, 'dist/sandbox.js')}');
const many = { deployments: null };
const providers = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const marketplace = { credit_usd: 100_000_000, team_limits: many };
const sandbox = await createSandbox({ providers, marketplace, rate_limits: false });
const headers = { authorization: 'Bearer ' + sandbox.defaultAccount.marketplace.apiKey, 'content-type': 'application/json' };
const ask = async (method, path, body) =>
  (await sandbox.fetch('/api' + path, { method, headers, body: body && JSON.stringify(body) })).json();
const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK bench';
const list = [...sandbox.providers.values()];
for (const provider of list) {
  const offers = await (await sandbox.fetch(provider.baseUrl + '/availability', { headers: { authorization: 'Bearer ' + provider.apiKey } })).json();
  for (const offer of offers.configurations)
    for (const region of offer.regions)
      for (let count = 0; count < 22; count++)
        await ask('POST', '/deployments', {
          provider: provider.name, offerId: offer.id, gpuCount: offer.gpu_count ?? 0, region,
          operatingSystem: offer.os_options[0], instanceType: offer.instance_type, ssh_public_key: key });
}
await sandbox.clock.advance(3_600_000);
const running = (await ask('GET', '/deployments?status=active')).filter(({ status }) => status === 'running');
const before = process.cpuUsage();
const begunAt = performance.now();
await sandbox.clock.advance(30 * 86_400_000);
const wallMs = performance.now() - begunAt;
const { user, system } = process.cpuUsage(before);
for (const { id } of running) await ask('DELETE', '/deployments/' + id);
const ended = (await ask('GET', '/deployments?status=inactive')).filter(({ startedAt }) => startedAt !== null);
const wrong = ended.filter(({ startedAt, stoppedAt, hourlyRate, totalCost }) => {
  const micro = BigInt(Math.round(hourlyRate * 1e6)) * BigInt(Date.parse(stoppedAt) - Date.parse(startedAt)) / 3_600_000n;
  return Math.round(totalCost * 1e6) !== Number(micro);
});
console.log(JSON.stringify({ running: running.length, wallMs, cpuMs: (user + system) / 1000, ended: ended.length, wrong: wrong.length }));
await sandbox.close();`;

/** A reset, and a snapshot and a restore of 1,000 instances: the median CPU time of each. */
const STATE = `
const { createSandbox } = await import('${join(ROOT, 'dist/sandbox.js')}');
const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK bench';
const sandbox = await createSandbox({ providers: ['a', 'b', 'c', 'd', 'e', 'f', 'g'], rate_limits: false });
const { reset, snapshots } = sandbox.control;
async function cpuMs(work, prepare = () => undefined) {
  const each = [];
  for (let round = 0; round < 9; round++) {
    await prepare();
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    each.push((user + system) / 1000);
  }
  return each.sort((a, b) => a - b)[4];
}
async function fill(most) {
  let made = 0;
  for (const { baseUrl, apiKey } of sandbox.providers.values()) {
    const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' };
    const offers = await (await sandbox.fetch(baseUrl + '/availability', { headers })).json();
    for (const offer of offers.configurations)
      for (const region of offer.regions)
        while (made < most) {
          const body = JSON.stringify({ configuration_id: offer.id, region, ssh_keys: [key] });
          if ((await sandbox.fetch(baseUrl + '/instances', { method: 'POST', headers, body })).status !== 201) break;
          made++;
        }
  }
  await sandbox.clock.advance(20 * 60_000);
  return made;
}
const resetMs = await cpuMs(reset, () => fill(10));
const instances = await fill(1_000);
const takeMs = await cpuMs(() => snapshots.take('full'));
const restoreMs = await cpuMs(() => snapshots.restore('full'));
console.log(JSON.stringify({ instances, resetMs, takeMs, restoreMs }));
await sandbox.close();`;

function runScript<T>(script: string): T {
  const args = ['--expose-gc', '--input-type=module', '-e', script];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT }));
}

/** Measures a server in its own process: the time to its first 200, and its resident memory then. */
async function measureServer(
  args: readonly string[],
  url: (output: string) => string | undefined,
): Promise<Figures> {
  const begunAt = performance.now();
  return whileServed(args, url, async ({ pid }) => {
    const firstMs = performance.now() - begunAt;
    const [, kb] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return { firstMs, memoryMb: Number(kb) / 1024 };
  });
}

/** Runs `measure` with the address of a server, once it answers 200. */
async function whileServed<T>(
  args: readonly string[],
  url: (output: string) => string | undefined,
  measure: (server: { pid: number | undefined; address: string }) => Promise<T>,
): Promise<T> {
  const begunAt = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: ROOT });
  try {
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    for (;;) {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output}`);
      const address = url(output);
      const status = address === undefined ? 0 : await statusOf(address);
      if (address !== undefined && status === 200) return await measure({ pid: child.pid, address });
      if (performance.now() - begunAt > LONGEST_START_MS)
        throw new Error(`${address} answers ${status}: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    child.kill();
  }
}

async function statusOf(address: string): Promise<number> {
  const { origin, pathname, username } = new URL(address);
  const headers = { authorization: `Bearer ${username}` };
  return fetch(`${origin}${pathname}`, { headers }).then(
    ({ status }) => status,
    () => 0,
  );
}

/** The base URL of a ready sandbox, with the key as its user. */
function readyUrl(output: string): string | undefined {
  if (!output.includes('\n')) return undefined;
  const [provider] = Object.values<{ base_url: string; api_key: string }>(JSON.parse(output).providers);
  return provider && `${provider.base_url.replace('://', `://${provider.api_key}@`)}/availability`;
}

async function best(measure: () => Figures | Promise<Figures>): Promise<Figures> {
  const rounds: Figures[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure());
  return {
    firstMs: Math.min(...rounds.map(({ firstMs }) => firstMs)),
    memoryMb: Math.min(...rounds.map(({ memoryMb }) => memoryMb)),
  };
}

async function measurePeers(): Promise<[string, Figures][]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-peers-'));
  try {
    const npm = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder];
    execFileSync('npm', [...npm, '@stoplight/prism-cli@5', 'json-server@0.17'], { stdio: 'inherit' });
    const prism = join(folder, 'node_modules/@stoplight/prism-cli/dist/index.js');
    const data = join(folder, 'data.json');
    const instances = Array.from({ length: 20 }, (_, index) => ({ id: `inst-${index}`, status: 'ONLINE' }));
    writeFileSync(data, JSON.stringify({ instances }));
    const jsonServer = join(folder, 'node_modules/json-server/lib/cli/bin.js');
    return [
      [
        'Prism, mock of openapi/orchestrator.v1.json',
        await best(() =>
          measureServer(
            [prism, 'mock', '-p', '4510', OPENAPI],
            () => 'http://key@127.0.0.1:4510/availability',
          ),
        ),
      ],
      [
        'json-server, of 20 instances',
        await best(() =>
          measureServer([jsonServer, '--port', '4511', data], () => 'http://key@127.0.0.1:4511/instances'),
        ),
      ],
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { peers: { type: 'boolean', default: false } } });
if (!existsSync(join(ROOT, 'dist/sandbox.js')))
  throw new Error('there is no dist/: run `npm run build` first');
const cli = ['dist/main.js', 'sandbox', '--port', '0', '--json'];
const figures: [string, Figures, string][] = [
  ['createSandbox in process', await best(() => runScript<Figures>(IN_PROCESS)), '150 ms, 60 MB'],
  ['berth sandbox', await best(() => measureServer(cli, readyUrl)), '700 ms, 130 MB'],
  ...(values.peers ? await measurePeers() : []).map(([name, found]): [string, Figures, string] => [
    name,
    found,
    '',
  ]),
];
printTable(
  [`least of ${ROUNDS}`, 'first 200, ms', 'memory, MB', 'aim'],
  figures.map(([name, { firstMs, memoryMb }, aim]) => [name, firstMs.toFixed(0), memoryMb.toFixed(0), aim]),
);
const month = runScript<Record<string, number>>(MONTH);
printLine(
  `30 days with ${month['running']} running deployments (aim: 1,000 ms with 1,000): ${month['wallMs']?.toFixed(0)} ms, of which CPU ${month['cpuMs']?.toFixed(0)} ms; of ${month['ended']} bills ${month['wrong']} are not exact`,
);
const { instances, resetMs, takeMs, restoreMs } = runScript<Record<string, number>>(STATE);
printLine(
  `CPU of a reset of seven providers (aim: 5 ms): ${resetMs?.toFixed(1)} ms; with ${instances} instances, of a snapshot ${takeMs?.toFixed(1)} ms, of a restore (aim: 50 ms) ${restoreMs?.toFixed(1)} ms`,
);
const costs = runScript<Record<string, number>>(COSTS);
const stuck = runScript<Record<string, number>>(STUCK);
const load = await whileServed([...cli, '--rate-limits', 'off'], readyUrl, ({ address }) => {
  const { origin, pathname, username } = new URL(address);
  return measureHttpLoad(`${origin}${pathname.replace(/\/availability$/, '')}`, username);
});
const ms = (value: number | undefined, digits = 0): string => `${value?.toFixed(digits)} ms`;
printTable(
  ['CPU, in process', 'found', 'aim'],
  [
    ['createSandbox and the first 200, after the import', ms(costs['firstMs']), '100 ms'],
    ['a further createSandbox', ms(costs['createdMs'], 1), '10 ms'],
    ['a further createSandbox and its first 200', ms(costs['answeredMs'], 1), ''],
    ['a poll', ms(costs['pollMs'], 3), '0.2 ms'],
    ['heap that the journal keeps of a poll', `${costs['heapBytes']?.toFixed(0)} bytes`, '1,024 bytes'],
    ['a day with 100 machines', ms(stuck['none']), ''],
    ['a day with 100 held removals', ms(stuck['held']), '1,000 ms'],
    ['a day with 100 removals that are stuck by a fault', ms(stuck['stuck']), '1,000 ms'],
    ['a day with 100 machines and armed faults without an occasion', ms(stuck['armed']), 'as without'],
  ],
);
printLine(
  `berth sandbox on two cores, one of which sends: ${load.requestsPerSecond.toFixed(0)} polls a second on 16 connections, p99 ${load.p99Ms.toFixed(1)} ms`,
);
