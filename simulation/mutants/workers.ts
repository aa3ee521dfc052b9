import { type ChildProcess, fork } from 'node:child_process';
import type { Outcome } from '../runner/run-world.ts';
import { isPatch } from './mutant.ts';
import { mutantOf } from './mutants.ts';
import type { Run } from './worker.ts';

/** A process that runs seeds. Loading the program takes longer than a seed. */
export class Worker {
  readonly #child: ChildProcess;

  /** `mutant`: the id of one that all of its runs have; a patch is loaded before all else. @throws {Error} if there is none */
  constructor(mutant?: string) {
    const isPatched = mutant !== undefined && isPatch(mutantOf(mutant).plant);
    this.#child = fork(new URL('worker.ts', import.meta.url), {
      ...(isPatched && {
        execArgv: ['--import', new URL('hook.ts', import.meta.url).href],
        env: { ...process.env, BERTH_SIM_MUTANT: mutant },
      }),
    });
  }

  async run(asked: Run): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const fail = (cause: unknown): void => reject(new Error(`a process of the simulation ended: ${cause}`));
    this.#child.once('message', resolve).once('error', fail).once('exit', fail);
    this.#child.send(asked);
    return promise.finally(() => this.#child.off('error', fail).off('exit', fail));
  }

  end(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
