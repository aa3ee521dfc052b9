import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** Identifies a process even if its pid is reused later. */
export interface ProcessIdentity {
  pid: number;
  host: string;
  /** Start time as the system reports it; absent if it does not. */
  startedAt?: string;
}

export function thisProcess(): ProcessIdentity {
  const startedAt = startOf(process.pid);
  return { pid: process.pid, host: hostname(), ...(startedAt !== undefined && { startedAt }) };
}

/** Whether a process is still running. `elsewhere`: it is on another host and cannot be checked. */
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
    // EPERM: the process exists and belongs to another user.
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

/** The boot id and the start time in ticks. A zombie counts as ended. */
function startOnLinux(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The program name, in brackets, may contain spaces.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z') return 'ended';
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[18]}`;
}
