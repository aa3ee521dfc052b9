import type { Failure } from '../runner/run-world.ts';
import { isEngine } from '../runner/subject.ts';
import { isPatch, type Mutant } from './mutant.ts';
import type { Run } from './worker.ts';
import { Worker } from './workers.ts';

/** What a hunt came to. */
export interface Hunted {
  invariant: string;
  message: string;
  /** The first seed that showed it. */
  seed: number;
}

export const MOST_SEEDS = 500;

/** Looks for mutants, and holds each find against the same seed without the mutant. */
export class Hunt {
  readonly #own = new Map<string, Promise<Failure | undefined>>();
  /** Without a patch, and free. */
  readonly #free: Worker[] = [];
  /** Seeds that the program itself fails, and how: faults of it, or of the simulation. */
  readonly ownFailures = new Map<string, string>();

  /** The first of these seeds that fails with the mutant and holds without it; null: there is none. */
  async find(mutant: Mutant, seeds: { first: number; last: number }): Promise<Hunted | null> {
    const { id, simulation: subject, commands = isEngine(subject) ? 30 : 40 } = mutant;
    const patched = isPatch(mutant.plant) ? new Worker(id) : undefined;
    try {
      for (let seed = seeds.first; seed <= seeds.last; seed++) {
        const run: Run = { subject, on: 'sqlite', seed, commands };
        const failure = await this.#run({ ...run, mutant: id }, patched);
        if (failure === undefined) continue;
        const { invariant, message } = failure;
        const own = await this.#withoutMutant(run);
        if (own === undefined) return { invariant, message, seed };
        this.ownFailures.set(`${subject} ${seed}`, own.message);
      }
      return null;
    } finally {
      patched?.end();
    }
  }

  #withoutMutant(run: Run): Promise<Failure | undefined> {
    const name = `${run.subject} ${run.seed} ${run.commands}`;
    const known = this.#own.get(name) ?? this.#run(run);
    this.#own.set(name, known);
    return known;
  }

  async #run(run: Run, patched?: Worker): Promise<Failure | undefined> {
    const worker = patched ?? this.#free.pop() ?? new Worker();
    const { failure } = await worker.run(run);
    if (worker !== patched) this.#free.push(worker);
    return failure;
  }

  /** Ends its processes. */
  end(): void {
    for (const worker of this.#free) worker.end();
  }
}
