import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATIENCE_MS } from '../time/until.ts';
import { fileOf } from './built-programs.ts';
import { hasTimes, quickReconcile, writeTimes } from './quick-times.ts';

export const mainFile = fileOf('main');
export const quickFile = fileOf('quick-berth');
export const compileCache = fileURLToPath(
  new URL('../../../node_modules/.cache/berth-tests', import.meta.url),
);

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export interface ProcessOptions {
  cwd?: string;
  /** Beside PATH, HOME and BERTH_CONTEXTS; nothing else of this process's environment is passed on. */
  env?: Record<string, string>;
  /** What it reads on standard input. */
  input?: string;
  /** The file that node runs; default `berth`, with the times beside its configuration. */
  entry?: string;
  /** Another Node than that of this process. */
  node?: string;
  /** Gives the process a channel for messages. */
  ipc?: boolean;
  uid?: number;
  /** A program and its arguments that run node, such as `prlimit`. */
  through?: readonly string[];
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A `berth` of its own, as a user would run it. `await using` kills what still runs, however the test ends. */
export class BerthProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], options: ProcessOptions = {}) {
    const { cwd, env = {}, input, ipc = false, uid, through = [] } = options;
    const { entry = hasTimes(args, cwd) ? quickFile : mainFile } = options;
    const { node = process.execPath } = options;
    const [command = node, ...rest] = [...through, node, entry, ...args];
    this.child = spawn(command, rest, {
      cwd,
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        BERTH_CONTEXTS: process.env['BERTH_CONTEXTS'],
        NODE_COMPILE_CACHE: compileCache,
        ...env,
      },
      stdio: ['pipe', 'pipe', 'pipe', ...(ipc ? ['ipc' as const] : [])],
      ...(uid !== undefined && { uid, gid: uid }),
    });
    alive.add(this.child);
    this.child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
    });
    this.child.stdin?.on('error', () => undefined);
    this.child.stdin?.end(input ?? '');
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.stderr += String(error);
      });
      this.child.once('close', (code, signal) => {
        alive.delete(this.child);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Waits until `find` returns something for the output so far. */
  async waitForOutput<T>(find: (stdout: string) => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const look = (): void => {
      const found = find(this.stdout);
      if (found !== undefined) resolve(found);
    };
    const timeout = setTimeout(
      () => reject(new Error(`no such output in time:\n${this.stdout}\n${this.stderr}`)),
      PATIENCE_MS,
    );
    this.child.stdout?.on('data', look);
    void this.ended.then(({ code, stdout, stderr }) =>
      reject(new Error(`it ended with ${code} first:\n${stdout}\n${stderr}`)),
    );
    look();
    return promise.finally(() => {
      clearTimeout(timeout);
      this.child.stdout?.off('data', look);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}

/** A run of the suite takes three minutes where nothing else runs. */
const RUN_PATIENCE_MS = 5 * PATIENCE_MS;

/** Runs a command to its end. */
export async function runBerth(args: readonly string[], options: ProcessOptions = {}): Promise<Ended> {
  const berth = new BerthProcess(args, options);
  const timeout = setTimeout(() => berth.child.kill('SIGKILL'), RUN_PATIENCE_MS);
  return berth.ended.finally(() => clearTimeout(timeout));
}

export interface ServingProcess extends BerthProcess {
  baseUrl: string;
  /** Empty unless it was the first start. */
  apiKey: string;
}

/** `berth serve --port 0 --json …`, awaited until it is ready. */
export async function startServing(
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<ServingProcess> {
  const berth = new BerthProcess(['serve', '--port', '0', '--json', ...args], options);
  try {
    const line = await berth.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
    const { base_url: baseUrl, api_key: apiKey } = JSON.parse(line);
    return Object.assign(berth, { baseUrl: String(baseUrl), apiKey: String(apiKey ?? '') });
  } catch (error) {
    await berth.end('SIGKILL');
    throw error;
  }
}

/** A folder that is removed at the end. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-process-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export interface FastConfig {
  /** More of the file. */
  more?: string;
  leaseS?: number;
  /** How long the platform takes over each step; absent: some milliseconds. */
  stepMs?: number;
  /** Of a `berth simulator`. */
  address?: string;
}

/** Writes a berth.yaml under which machines boot, stop and go at once; returns its path. */
export function writeFastConfig(
  folder: string,
  { more = '', leaseS = 30, stepMs, address }: FastConfig = {},
): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'berth.yaml');
  const range = (from: number, to: number): [number, number] => [stepMs ?? from, stepMs ?? to];
  writeFileSync(
    file,
    `platform: { driver: simulator${address === undefined ? '' : `, address: ${address}`} }
rate_limits: false
log_level: warn
database: sqlite:data/berth.db
${more}`,
  );
  writeTimes(file, {
    reconcile: { ...quickReconcile, leaseMs: leaseS * 1_000 },
    simulator: {
      bootMs: range(20, 60),
      stopMs: range(10, 30),
      startMs: range(20, 60),
      restartMs: range(20, 60),
      destroyMs: range(10, 30),
      volumeMs: range(5, 20),
    },
  });
  return file;
}
