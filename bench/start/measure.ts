import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Way } from './ways.ts';

/** The cost of a cold start. */
export interface Start {
  /** Time from the start of the process to the complete reply to the first request, which carries the printed key. */
  startMs: number;
  /** User and system time of the process until then, all threads. */
  cpuMs: number;
  /** Peak memory until then. */
  peakMb: number;
}

/**
 * Starts `berth serve` on a database, requests its offers, and stops it with SIGTERM. With `isKilled` it uses SIGKILL,
 * so that the next start follows an unclean stop. `apiKey` is given for an existing database.
 */
export async function measureServe(
  way: Pick<Way, 'name' | 'command' | 'env'>,
  database: string,
  { apiKey, isKilled = false }: { apiKey?: string; isKilled?: boolean } = {},
): Promise<Start> {
  const began = performance.now();
  const child = run(way, ['serve', '--port', '0', '--json', '--database', `sqlite:${database}`]);
  const ended = once(child, 'exit');
  try {
    const { base_url: baseUrl, api_key: key } = JSON.parse(await firstLine(child));
    const reply = await fetch(`${baseUrl}/availability`, {
      headers: { Authorization: `Bearer ${apiKey ?? key}` },
    });
    const { configurations } = (await reply.json()) as { configurations?: unknown[] };
    const startMs = performance.now() - began;
    if (reply.status !== 200 || !configurations?.length)
      throw new Error(`${way.name}: the server answers ${reply.status}, and offers nothing`);
    return { startMs, ...usageOf(child.pid) };
  } finally {
    child.kill(isKilled ? 'SIGKILL' : 'SIGTERM');
    const [code] = await ended;
    if (code !== 0 && !isKilled) process.stderr.write(`${way.name}: it ended with ${code}\n`);
  }
}

/** Milliseconds that `berth conformance --help` takes. */
export async function measureHelp(way: Way): Promise<number> {
  const began = performance.now();
  const child = run(way, ['conformance', '--help']);
  const [help, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0 || !help.startsWith('Usage: berth conformance'))
    throw new Error(`${way.name}: \`berth conformance --help\` ends with ${code} after ${help}`);
  return performance.now() - began;
}

function run({ command, env }: Pick<Way, 'command' | 'env'>, args: readonly string[]) {
  const [program = '', ...rest] = command;
  return spawn(program, [...rest, ...args], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

async function firstLine(child: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<string> {
  let output = '';
  for await (const part of child.stdout) {
    output += part;
    if (output.includes('\n')) return output;
  }
  throw new Error('the server ended before it was ready');
}

/** Read from Linux's /proc, which counts CPU time in hundredths of a second. */
function usageOf(pid: number | undefined): Pick<Start, 'cpuMs' | 'peakMb'> {
  const peakKb = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [, user, system] = /^\d+ \(.*\)(?: \S+){11} (\d+) (\d+)/.exec(stat) ?? [];
  return { cpuMs: (Number(user) + Number(system)) * 10, peakMb: Number(peakKb) / 1024 };
}
