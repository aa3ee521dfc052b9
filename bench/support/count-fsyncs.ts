import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';

const CALL = /\b(?:fsync|fdatasync)\(/g;

/** Counts the fsyncs of a process while `body` runs. Null: strace is not installed. */
export async function countFsyncs(pid: number, body: () => Promise<void>): Promise<number | null> {
  const args = ['-f', '-e', 'trace=fsync,fdatasync', '-p', String(pid)];
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(tracer, 'exit').catch(() => undefined);
  let text = '';
  tracer.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  while (!text.includes('attached') && tracer.exitCode === null && tracer.pid !== undefined) await pause(20);
  const isTracing = tracer.pid !== undefined && tracer.exitCode === null;
  try {
    await body();
  } finally {
    tracer.kill('SIGINT');
    await ended;
  }
  return isTracing ? (text.match(CALL) ?? []).length : null;
}
