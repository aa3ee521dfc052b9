import { spawn } from 'node:child_process';
import { problemOf, VirshError } from './errors.ts';
import type { HostOptions } from './options.ts';

/** How long one call of virsh may take: the core waits no longer for a whole step. */
const CALL_MS = 15_000;
/** Calls of virsh at once for each host: each is a process, and with `qemu+ssh` a login. */
const MAX_CALLS = 8;

export interface VirshCall {
  /** What it reads where an argument is `/dev/stdin`. Secrets go here and never into an argument. */
  input?: string | Uint8Array;
  timeoutMs?: number;
}

/** A host of libvirt as the rest of the driver sees it: one for each entry under `hosts:`. */
export interface Host {
  readonly name: string;
  readonly options: HostOptions;
  /** Its standard output. The arguments are passed on as they are: there is no shell. @throws {VirshError} */
  virsh(args: readonly string[], call?: VirshCall): Promise<string>;
  /** The same for output that is no text. */
  virshBytes(args: readonly string[], call?: VirshCall): Promise<Buffer>;
}

/** Runs `virsh` as a process for each call, so that no connection is kept that a restart of libvirtd would break. */
export function openHost(options: HostOptions, program = 'virsh'): Host {
  const slots = createSlots(MAX_CALLS);
  const run = (args: readonly string[], call: VirshCall): Promise<Buffer> =>
    slots(() => runProgram(program, ['-q', '-c', options.uri, ...args], describe(options, args), call));
  return {
    name: options.name,
    options,
    virsh: async (args, call = {}) => (await run(args, call)).toString('utf8'),
    virshBytes: (args, call = {}) => run(args, call),
  };
}

/** The subcommand and what it is about; texts such as XML are left out. */
function describe({ name }: HostOptions, args: readonly string[]): string {
  return `virsh ${args.slice(0, 2).join(' ').slice(0, 120)} on ${name}`;
}

function runProgram(
  program: string,
  args: readonly string[],
  what: string,
  { input = '', timeoutMs = CALL_MS }: VirshCall,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const child = spawn(program, args, {
    stdio: 'pipe',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, LC_ALL: 'C.UTF-8', LANGUAGE: 'C' },
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (part: Buffer) => out.push(part));
  child.stderr.on('data', (part: Buffer) => err.push(part));
  // A program that ends early does not read its input to the end.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.on('error', (error) => reject(new VirshError('unreachable', `${what}: ${error.message}`)));
  child.on('close', (code, signal) => {
    if (code === 0) return resolve(Buffer.concat(out));
    if (signal !== null)
      return reject(new VirshError('unreachable', `${what}: no answer within ${timeoutMs} ms`));
    const words = Buffer.concat(err)
      .toString('utf8')
      .replace(/^error: /gm, '')
      .trim();
    reject(new VirshError(problemOf(words), `${what}: ${words.replace(/\s*\n\s*/g, ' · ').slice(0, 1_000)}`));
  });
  return promise;
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
