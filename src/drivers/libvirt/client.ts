import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { problemOf, VirshError } from './errors.ts';
import type { HostOptions } from './options.ts';
import { runProgram } from './run-program.ts';

/** How long one call of virsh may take: the core waits no longer for a whole step. */
const CALL_MS = 15_000;
/** Calls of virsh at once for each host: each is a process, and with `qemu+ssh` a login. */
const MAX_CALLS = 8;

export interface VirshCall {
  /** What it reads where an argument is `/dev/stdin`. Secrets go here and never into an argument. */
  input?: string | Uint8Array;
  /** Instead of `input`: an open file. */
  file?: number;
  timeoutMs?: number;
}

/** A host of libvirt as the rest of the driver sees it: one for each entry under `hosts:`. */
export interface Host {
  readonly name: string;
  readonly options: HostOptions;
  /** Its standard output. The arguments are passed on as they are: there is no shell. @throws {VirshError} */
  virsh(args: readonly string[], call?: VirshCall): Promise<string>;
  /** The same for a call that writes to `/dev/stdout`. */
  virshBytes(args: readonly string[], call?: VirshCall): Promise<Buffer>;
}

/** Runs `virsh` as a process for each call, so that no connection is kept that a restart of libvirtd would break. */
export function openHost(options: HostOptions, program = 'virsh'): Host {
  const slots = createSlots(MAX_CALLS);
  const unlessSilent = failFastWhileSilent(options.name);
  const run = (args: readonly string[], call: VirshCall, bytes = false): Promise<Buffer> =>
    unlessSilent(() =>
      slots(async () => {
        const input = call.file ?? anonymousFile(call.input ?? '');
        const files = { input, output: bytes ? anonymousFile('') : undefined };
        try {
          const argv = ['-q', '-c', withoutQuestions(options.uri), ...args];
          const printed = await callVirsh(program, argv, describe(options, args), files, call.timeoutMs);
          return files.output === undefined ? printed : contentOf(files.output);
        } finally {
          if (call.file === undefined) closeSync(input);
          if (files.output !== undefined) closeSync(files.output);
        }
      }),
    );
  return {
    name: options.name,
    options,
    virsh: async (args, call = {}) => (await run(args, call)).toString('utf8'),
    virshBytes: (args, call = {}) => run(args, call, true),
  };
}

/** OpenSSH would ask for a password on the terminal, where nobody answers. */
function withoutQuestions(uri: string): string {
  if (!uri.startsWith('qemu+ssh:') || /[?&]no_tty=/.test(uri)) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}no_tty=1`;
}

/** The subcommand and what it is about; texts such as XML are left out. */
function describe({ name }: HostOptions, args: readonly string[]): string {
  return `virsh ${args.slice(0, 2).join(' ').slice(0, 120)} on ${name}`;
}

/**
 * A file without a name, for what is read or written as `/dev/stdin` and `/dev/stdout`: Node's own pipes are sockets,
 * which cannot be opened by these names.
 */
function anonymousFile(content: string | Uint8Array): number {
  const path = join(tmpdir(), `berth-virsh-${crypto.randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
  return file;
}

function contentOf(file: number): Buffer {
  const content = Buffer.alloc(fstatSync(file).size);
  for (let at = 0; at < content.length; ) {
    const read = readSync(file, content, at, content.length - at, at);
    if (read === 0) break;
    at += read;
  }
  return content;
}

async function callVirsh(
  program: string,
  args: readonly string[],
  what: string,
  { input, output }: { input: number; output: number | undefined },
  timeoutMs = CALL_MS,
): Promise<Buffer> {
  const stdio = [input, output ?? 'pipe', 'pipe'] as const;
  const ended = await runProgram([program, ...args], { what, stdio, timeoutMs });
  if (ended.status === 0) return ended.stdout;
  const words = ended.stderr
    .toString('utf8')
    .replace(/^error: /gm, '')
    .trim();
  throw new VirshError(problemOf(words), `${what}: ${words.replace(/\s*\n\s*/g, ' · ').slice(0, 1_000)}`);
}

/**
 * A host that swallows every call would delay what is asked of the others by the time limit of a call. Once a call of it found
 * no answer, one at a time finds out whether it answers again, and the rest fail at once.
 */
export function failFastWhileSilent(name: string): <T>(call: () => Promise<T>) => Promise<T> {
  let isSilent = false;
  let isTrying = false;
  return async (call) => {
    if (isSilent && isTrying) throw new VirshError('unreachable', `${name} does not answer`);
    const isTry = isSilent;
    if (isTry) isTrying = true;
    try {
      const answer = await call();
      isSilent = false;
      return answer;
    } catch (error) {
      isSilent = error instanceof VirshError && error.problem === 'unreachable';
      throw error;
    } finally {
      if (isTry) isTrying = false;
    }
  };
}

/** Lets so many run at once; the others wait in order. */
function createSlots(count: number): <T>(task: () => Promise<T>) => Promise<T> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}
