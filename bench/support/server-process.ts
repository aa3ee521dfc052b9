import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Ready, Usage } from './measured-process.ts';

/** A server in its own process. Its CPU time is read outside the load. */
export class ServerProcess {
  readonly port: number;
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    this.pid = child.pid ?? 0;
  }

  /** @throws {Error} if the process ends before it serves. */
  static async start(file: URL, args: readonly string[]): Promise<ServerProcess> {
    const child = fork(file, args, { execArgv: ['--expose-gc', '--max-semi-space-size=8', ...profiling()] });
    const { ready } = (await answerOf(child)) as Ready<{ port: number }>;
    return new ServerProcess(child, ready.port);
  }

  async usage(): Promise<Usage> {
    return this.#ask('usage');
  }

  /** Makes `usage` include stalls from now on. */
  async watchStalls(): Promise<Usage> {
    return this.#ask('watch stalls');
  }

  async collectGarbage(): Promise<Usage> {
    return this.#ask('collect garbage');
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.disconnect();
    await exit;
  }

  async #ask(question: string): Promise<Usage> {
    this.#child.send(question);
    return (await answerOf(this.#child)) as Usage;
  }
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const answered = new AbortController();
  const { signal } = answered;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a server ended with code ${code}`);
  });
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    return message;
  } finally {
    ended.catch(() => undefined);
    answered.abort();
  }
}

/** `BERTH_BENCH_PROFILE=folder` writes a CPU profile of each server there. */
function profiling(): string[] {
  const folder = process.env['BERTH_BENCH_PROFILE'];
  return folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`];
}
