import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { printTable } from '../src/runtime/print.ts';

// Start, memory and CPU of the sandbox of the package: `npm run build && npm run bench -- sandbox`.

const ROOT = new URL('..', import.meta.url).pathname;
const ROUNDS = 5;

/** In a process of its own: start after the import, CPU of a further sandbox, CPU and heap of a poll. */
const IN_PROCESS = `
const rss = process.memoryUsage().rss;
const { createSandbox } = await import('${join(ROOT, 'dist/sandbox.js')}');
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const ask = async (sandbox, path, body) => {
  const { baseUrl, apiKey } = sandbox.provider('a');
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' };
  const init = { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) };
  const answer = await sandbox.fetch(baseUrl + path, init);
  if (!answer.ok) throw new Error(path + ' is answered ' + answer.status);
  return answer.json();
};
const begun = { at: performance.now(), cpu: cpu() };
const sandbox = await createSandbox({ rate_limits: false });
const { configurations: [offer] } = await ask(sandbox, '/availability');
const found = {
  firstMs: performance.now() - begun.at,
  firstCpuMs: cpu() - begun.cpu,
  memoryMb: (process.memoryUsage().rss - rss) / 2 ** 20,
};
const created = [], answered = [];
for (let round = 0; round < 9; round++) {
  const before = cpu();
  const other = await createSandbox({ rate_limits: false });
  created.push(cpu() - before);
  await ask(other, '/availability');
  answered.push(cpu() - before);
  await other.close();
}
const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK bench';
const { id } = await ask(sandbox, '/instances', { configuration_id: offer.id, region: offer.regions[0], ssh_keys: [key] });
await sandbox.clock.advance(60_000);
const poll = async (count) => { for (let one = 0; one < count; one++) await ask(sandbox, '/instances/' + id); };
const heap = async () => {
  for (let turn = 0; turn < 4; turn++) { await new Promise((resolve) => setTimeout(resolve, 10)); globalThis.gc(); }
  return process.memoryUsage().heapUsed;
};
await poll(3_000);
const heapBefore = await heap();
const polls = [];
for (let round = 0; round < 20; round++) {
  const before = cpu();
  await poll(300);
  polls.push((cpu() - before) / 300);
}
const heapBytes = ((await heap()) - heapBefore) / 6_000;
console.log(JSON.stringify({ ...found, createdMs: median(created), answeredMs: median(answered), pollMs: median(polls), heapBytes }));
await sandbox.close();`;

type Figures = Record<string, number>;

function measureInProcess(): Figures {
  const args = ['--expose-gc', '--input-type=module', '-e', IN_PROCESS];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT }));
}

/** `berth sandbox`: the time to its first 200, and its resident memory then. */
async function measureServer(): Promise<Figures> {
  const begunAt = performance.now();
  const args = ['dist/main.js', 'sandbox', '--port', '0', '--json'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: ROOT });
  try {
    let output = '';
    for await (const text of child.stdout.setEncoding('utf8')) {
      output += text;
      if (output.includes('\n')) break;
    }
    const [provider] = Object.values<{ base_url: string; api_key: string }>(JSON.parse(output).providers);
    const headers = { authorization: `Bearer ${provider?.api_key}` };
    const { status } = await fetch(`${provider?.base_url}/availability`, { headers });
    if (status !== 200) throw new Error(`its first reply is ${status}`);
    const servedMs = performance.now() - begunAt;
    const [, kb] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return { servedMs, servedMb: Number(kb) / 1024 };
  } finally {
    child.kill();
  }
}

if (!existsSync(join(ROOT, 'dist/sandbox.js')))
  throw new Error('there is no dist/: run `npm run build` first');
const rounds: Figures[] = [];
for (let round = 0; round < ROUNDS; round++)
  rounds.push({ ...measureInProcess(), ...(await measureServer()) });
const least = (name: string, digits = 0): string =>
  Math.min(...rounds.map((figures) => figures[name] ?? Number.NaN)).toFixed(digits);
printTable(
  [`least of ${ROUNDS}`, 'found', 'aim'],
  [
    ['createSandbox() in process, to the first 200', `${least('firstMs')} ms`, '150 ms'],
    ['its CPU, after the import', `${least('firstCpuMs')} ms`, '100 ms'],
    ['its memory', `${least('memoryMb')} MB`, '60 MB'],
    ['CPU of a further createSandbox()', `${least('createdMs', 1)} ms`, '10 ms'],
    ['CPU of a further createSandbox() and its first 200', `${least('answeredMs', 1)} ms`, ''],
    ['CPU of a poll, in process', `${least('pollMs', 3)} ms`, '0.2 ms'],
    ['heap that the journal keeps of a poll', `${least('heapBytes')} bytes`, '1,024 bytes'],
    ['`berth sandbox`, to the first 200', `${least('servedMs')} ms`, '700 ms'],
    ['its memory', `${least('servedMb')} MB`, '130 MB'],
  ],
);
