import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process, told apart from a later one that has the same number. */
export interface ProcessIdentity {
  pid: number;
  host: string;
  /** When it began, as the system writes it; absent where the system does not say. */
  startedAt?: string;
}

export function thisProcess(): ProcessIdentity {
  const startedAt = startOf(process.pid);
  return { pid: process.pid, host: hostname(), ...(startedAt === undefined ? {} : { startedAt }) };
}

/** Whether a process still runs; `elsewhere` where it is one of another host, of which nothing is known here. */
export function livenessOf({ pid, host, startedAt }: ProcessIdentity): 'alive' | 'ended' | 'elsewhere' {
  if (host !== hostname()) return 'elsewhere';
  if (!exists(pid)) return 'ended';
  const now = startOf(pid);
  return startedAt === undefined || now === undefined || now === startedAt ? 'alive' : 'ended';
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there, and another user's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function startOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') return startOnLinux(pid);
    if (process.platform === 'win32') return undefined;
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** The boot, and the ticks since then. A zombie counts as ended. */
function startOnLinux(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The program's name, in brackets, may hold blanks.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z') return 'ended';
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[18]}`;
}
