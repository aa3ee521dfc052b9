import { closeSync } from 'node:fs';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import type { HostDomain } from './domain-xml.ts';
import { problemOf, VirshError, type VirshProblem } from './errors.ts';
import { guarded, guardProblems, type Limits, type Run } from './hosts/guard.ts';
import { type Login, onHost, openLogin, SSH_FAILED } from './hosts/host-shell.ts';
import type { HostOptions } from './options.ts';
import { anonymousFile, contentOf, runProgram } from './run-program.ts';

/** Time limit of a virsh call outside a step; see {@link DEFAULT_CALL_MS}. */
const CALL_MS = 2 * DEFAULT_CALL_MS;
/** Libvirt gives up on a QEMU process that does not end in less time. */
const QUESTION_MS = 120_000;
/** Time limit for the check whether a host still answers. */
const PROBE_MS = DEFAULT_CALL_MS / 3;
/** Concurrent virsh calls per host. Each is a process, and with `qemu+ssh` a login. */
const MAX_CALLS = 8;

export interface VirshCall {
  /** Read by an argument `/dev/stdin`. Secrets go here, never into an argument. */
  input?: string | Uint8Array;
  timeoutMs?: number;
  /**
   * For a question that may wait for one domain: how long its answer is awaited, in milliseconds. The command goes on
   * afterwards. Until it has ended, the same question fails at once, since each takes one of libvirt's workers.
   */
  withinMs?: number;
  /** For a command that changes something: the limits of its call. */
  limits?: Limits | undefined;
  /** Runs the command only in this run of the domain. */
  run?: Run | undefined;
}

/** A libvirt host, as the rest of the driver uses it: one per entry under `hosts:`. */
export interface Host {
  readonly name: string;
  readonly options: HostOptions;
  /** The domains of its last complete list, by name. */
  readonly lastKnown: Map<string, HostDomain>;
  /**
   * Runs virsh and returns its standard output. The arguments are passed unchanged, without a shell.
   *
   * @throws {VirshError}
   */
  virsh(args: readonly string[], call?: VirshCall): Promise<string>;
  /** Like `virsh`, for a call that writes to `/dev/stdout`. */
  virshBytes(args: readonly string[], call?: VirshCall): Promise<Buffer>;
}

/** Runs `virsh` as one process per call, so that no open connection can break when libvirtd restarts. */
export function openHost(
  options: HostOptions,
  login: Login = openLogin(options),
  program = 'virsh',
): Host & { close(): void } {
  const slots = createSlots(MAX_CALLS);
  const closing = new AbortController();
  /** Questions that libvirt has not answered in time. */
  const unanswered = new Set<string>();
  const callOnce = async (
    args: readonly string[],
    call: VirshCall,
    {
      bytes = false,
      signal = call.limits?.signal,
    }: { bytes?: boolean; signal?: AbortSignal | undefined } = {},
  ): Promise<Buffer> => {
    await login.open();
    const { limits, run } = call;
    limits?.begin();
    const isGuarded = limits !== undefined || run !== undefined;
    const input = anonymousFile(call.input ?? '');
    const files = { input, output: bytes ? anonymousFile('') : undefined };
    try {
      const own = [program, login.ownUri, options.state_dir] as const;
      const argv = isGuarded
        ? onHost(login, guarded(own, { fence: limits, run }, args, login.ssh !== undefined))
        : [program, '-q', '-c', login.uri, ...args];
      const printed = await callVirsh(argv, describe(options, args), files, {
        timeoutMs: call.timeoutMs ?? CALL_MS,
        asking: login.asking,
        signal,
        isGuarded,
      });
      return files.output === undefined ? printed : contentOf(files.output);
    } finally {
      closeSync(input);
      if (files.output !== undefined) closeSync(files.output);
    }
  };
  const probe = () => callOnce(['hostname'], { timeoutMs: PROBE_MS });
  const unlessSilent = failFastWhileSilent(options.name, probe);
  const ask = async (args: readonly string[], call: VirshCall, withinMs: number): Promise<Buffer> => {
    const question = args.join(' ');
    const late = new VirshError('late', `${describe(options, args)}: libvirt waits for a domain`);
    if (unanswered.has(question)) throw late;
    await login.open();
    const end = new AbortController();
    const signal = AbortSignal.any([closing.signal, end.signal]);
    const answer = callOnce(args, { ...call, timeoutMs: QUESTION_MS }, { signal });
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, withinMs);
    const probed = isLate.then(probe).catch((error) => {
      end.abort();
      throw error;
    });
    // On a busy host both are slow: the question is late if a later one is answered first.
    const first = await Promise.race([answer, probed.then(() => undefined)]).finally(() =>
      clearTimeout(timer),
    );
    if (first !== undefined) return first;
    unanswered.add(question);
    answer.catch(() => {}).finally(() => unanswered.delete(question));
    throw late;
  };
  const run = (args: readonly string[], call: VirshCall, bytes = false): Promise<Buffer> =>
    unlessSilent(() =>
      slots(() =>
        call.withinMs === undefined ? callOnce(args, call, { bytes }) : ask(args, call, call.withinMs),
      ),
    );
  return {
    name: options.name,
    options,
    lastKnown: new Map(),
    virsh: async (args, call = {}) => (await run(args, call)).toString('utf8'),
    virshBytes: (args, call = {}) => run(args, call, true),
    close: () => closing.abort(),
  };
}

function describe({ name }: HostOptions, args: readonly string[]): string {
  return `virsh ${args.slice(0, 2).join(' ').slice(0, 120)} on ${name}`;
}

async function callVirsh(
  argv: readonly string[],
  what: string,
  { input, output }: { input: number; output: number | undefined },
  {
    isGuarded,
    ...limits
  }: {
    timeoutMs: number;
    asking: Login['asking'];
    signal: AbortSignal | undefined;
    isGuarded: boolean;
  },
): Promise<Buffer> {
  const stdio = [input, output ?? 'pipe', 'pipe'] as const;
  const ended = await runProgram(argv, { what, stdio, ...limits });
  if (ended.status === 0) return ended.stdout;
  const words = ended.stderr
    .toString('utf8')
    .replace(/^error: /gm, '')
    .trim();
  const problem = isGuarded ? problemOfGuard(ended.status ?? 0, words) : problemOf(words);
  throw new VirshError(problem, `${what}: ${words.replace(/\s*\n\s*/g, ' · ').slice(0, 1_000)}`);
}

function problemOfGuard(status: number, words: string): VirshProblem {
  const known = guardProblems[status];
  if (known !== undefined) return known;
  const problem = problemOf(words);
  return status === SSH_FAILED && problem !== 'refused' ? 'unreachable' : problem;
}

/**
 * Keeps a host that does not answer from delaying work on other hosts. After one call without an answer, all calls
 * fail at once, and each starts `probe` in the background (once at a time) to detect when the host answers again.
 */
export function failFastWhileSilent(
  name: string,
  probe: () => Promise<unknown>,
): <T>(call: () => Promise<T>) => Promise<T> {
  let silence: VirshError | undefined;
  let isProbing = false;
  const noteSilence = (error: unknown): void => {
    silence = error instanceof VirshError && error.problem === 'unreachable' ? error : undefined;
  };
  const find = async (): Promise<void> => {
    isProbing = true;
    await probe().then(() => noteSilence(undefined), noteSilence);
    isProbing = false;
  };
  return async (call) => {
    if (silence !== undefined) {
      if (!isProbing) void find();
      throw new VirshError('unreachable', `${name} does not answer: ${silence.message}`);
    }
    try {
      return await call();
    } catch (error) {
      noteSilence(error);
      throw error;
    }
  };
}

/** Runs `count` tasks at once; the others wait in order. */
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
