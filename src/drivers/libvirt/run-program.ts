import { type StdioPipe, spawn } from 'node:child_process';
import { fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Asking } from '../kit/asking.ts';
import { usualEnvironment } from '../kit/environment.ts';
import { VirshError, type VirshProblem } from './errors.ts';

/** Environment variables that virsh and OpenSSH need besides the usual ones, for logins and credentials. */
const NEEDED = [
  ...['USER', 'LOGNAME', 'TMPDIR', 'SSH_AUTH_SOCK', 'KRB5CCNAME', 'LIBVIRT_AUTH_FILE'],
  ...['XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME'],
];
/** More than the output for 10,000 domains; a larger output is not a valid answer. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

interface Ended {
  status: number | null;
  stdout: Buffer;
  stderr: Buffer;
}

interface RunOptions {
  /** Subject of the error messages. */
  what: string;
  stdio: readonly [StdioPipe | number, StdioPipe | number, StdioPipe | number];
  input?: string;
  timeoutMs: number;
  /** May shorten `timeoutMs`. */
  asking?: Asking | undefined;
  /** Kills the program when it aborts. */
  signal?: AbortSignal | undefined;
}

/** After a kill, processes that left the group may still hold its pipes. */
const PIPES_CLOSE_WITHIN_MS = 2_000;

/**
 * Runs a program without a shell, in its own process group, so that it cannot prompt on a terminal and its child
 * processes end with it. Settles when none of these processes runs.
 *
 * @throws {VirshError} `unreachable` if it did not end by itself, `aborted` if `signal` ended it
 */
export function runProgram(
  [program = '', ...args]: readonly string[],
  { what, stdio, input, timeoutMs: longestMs, asking, signal }: RunOptions,
): Promise<Ended> {
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  const env = { ...usualEnvironment(process.env, NEEDED), LC_ALL: 'C.UTF-8', LANGUAGE: 'C' };
  const child = spawn(program, args, { stdio: [...stdio], env, detached: true });
  let problem: VirshError | undefined;
  let closing: NodeJS.Timeout | undefined;
  const closePipes = (): void => {
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  };
  const giveUp = (reason: string, kind: VirshProblem = 'unreachable'): void => {
    if (problem !== undefined) return;
    problem = new VirshError(kind, `${what}: ${reason}`);
    closing = setTimeout(closePipes, PIPES_CLOSE_WITHIN_MS);
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of its processes have ended.
    }
  };
  const timeoutMs = Math.min(longestMs, asking?.withinMs ?? longestMs);
  const stop = (): void => giveUp('Berth stopped waiting for it');
  const abort = (): void => giveUp('the call was cancelled', 'aborted');
  asking?.signal.addEventListener('abort', stop);
  signal?.addEventListener('abort', abort);
  const timer = setTimeout(giveUp, timeoutMs, `no answer within ${timeoutMs} ms`);
  const settle = (ended: Ended): void => {
    clearTimeout(timer);
    clearTimeout(closing);
    asking?.signal.removeEventListener('abort', stop);
    signal?.removeEventListener('abort', abort);
    if (problem === undefined) resolve(ended);
    else reject(problem);
  };
  const said = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  let bytes = 0;
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.on('data', (part: Buffer) => {
      if (problem !== undefined) return;
      said[stream].push(part);
      bytes += part.length;
      if (bytes > MAX_OUTPUT_BYTES) giveUp(`it wrote more than ${MAX_OUTPUT_BYTES >> 20} MiB`);
    });
  const ended = (status: number | null): Ended => ({
    status,
    stdout: Buffer.concat(said.stdout),
    stderr: Buffer.concat(said.stderr),
  });
  child.on('error', ({ message }) => {
    giveUp(message);
    // It never started, so no `close` event follows.
    if (child.pid === undefined) settle(ended(null));
  });
  child.on('close', (status, killedBy) => {
    if (killedBy !== null) giveUp(`it was killed by ${killedBy}`);
    settle(ended(status));
  });
  // A program that ends early does not read all of its input.
  child.stdin?.on('error', () => {}).end(input);
  return promise;
}

/**
 * Opens a file without a name, to be used as `/dev/stdin` or `/dev/stdout`. Node's own pipes are sockets, which
 * cannot be opened by these names.
 */
export function anonymousFile(content: string | Uint8Array): number {
  const path = join(tmpdir(), `berth-virsh-${crypto.randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
  return file;
}

export function contentOf(file: number): Buffer {
  const content = Buffer.alloc(fstatSync(file).size);
  for (let at = 0; at < content.length; ) {
    const read = readSync(file, content, at, content.length - at, at);
    if (read === 0) break;
    at += read;
  }
  return content;
}
