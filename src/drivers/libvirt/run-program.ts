import { type StdioPipe, spawn } from 'node:child_process';
import type { Asking } from '../kit/asking.ts';
import { usualEnvironment } from '../kit/environment.ts';
import { VirshError } from './errors.ts';

/** What virsh and OpenSSH need of Berth's environment beside the usual: where they log in, and with what. */
const NEEDED = [
  ...['USER', 'LOGNAME', 'TMPDIR', 'SSH_AUTH_SOCK', 'KRB5CCNAME', 'LIBVIRT_AUTH_FILE'],
  ...['XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME'],
];
/** More than 10,000 domains have; what says more does not say what was asked. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

interface Ended {
  status: number | null;
  stdout: Buffer;
  stderr: Buffer;
}

interface RunOptions {
  /** The beginning of a sentence about it. */
  what: string;
  stdio: readonly [StdioPipe | number, StdioPipe | number, StdioPipe | number];
  input?: string;
  timeoutMs: number;
  /** Makes that shorter. */
  asking?: Asking | undefined;
}

/**
 * Runs a program without a shell, in a process group of its own, so that it has no terminal to ask at and that what it
 * started ends with it. @throws {VirshError} `unreachable` if it did not end by itself
 */
export function runProgram(
  [program = '', ...args]: readonly string[],
  { what, stdio, input, timeoutMs: longestMs, asking }: RunOptions,
): Promise<Ended> {
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  const env = { ...usualEnvironment(process.env, NEEDED), LC_ALL: 'C.UTF-8', LANGUAGE: 'C' };
  const child = spawn(program, args, { stdio: [...stdio], env, detached: true });
  const giveUp = (reason: string): void => {
    reject(new VirshError('unreachable', `${what}: ${reason}`));
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of it has ended.
    }
  };
  const timeoutMs = Math.min(longestMs, asking?.withinMs ?? longestMs);
  const stop = (): void => giveUp('it was not waited for any longer');
  asking?.signal.addEventListener('abort', stop);
  const timer = setTimeout(giveUp, timeoutMs, `no answer within ${timeoutMs} ms`);
  const said = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  let bytes = 0;
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.on('data', (part: Buffer) => {
      said[stream].push(part);
      bytes += part.length;
      if (bytes > MAX_OUTPUT_BYTES) giveUp(`it wrote more than ${MAX_OUTPUT_BYTES >> 20} MiB`);
    });
  child.on('error', ({ message }) => giveUp(message));
  child.on('close', (status, signal) => {
    clearTimeout(timer);
    asking?.signal.removeEventListener('abort', stop);
    if (signal !== null) giveUp(`it was ended by ${signal}`);
    else resolve({ status, stdout: Buffer.concat(said.stdout), stderr: Buffer.concat(said.stderr) });
  });
  // A program that ends early does not read its input to the end.
  child.stdin?.on('error', () => {}).end(input);
  return promise;
}
