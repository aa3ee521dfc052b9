import { fork } from 'node:child_process';

/** What a hunt came to. */
export interface Hunted {
  invariant: string;
  message: string;
  /** The first seed that showed it, of 1, 2, 3 …: so many were needed. */
  seed: number;
}

export const HUNT_COMMANDS = 100;
export const MOST_SEEDS = 500;

/** Runs the seeds from `first` to `last` in a process of its own, with the mutant or as the program is. */
function ask(first: number, last: number, mutant?: string): Promise<Hunted | null> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('hunter.ts', import.meta.url), [String(first), String(last)], {
      ...(mutant !== undefined && {
        execArgv: ['--import', new URL('hook.ts', import.meta.url).href],
        env: { ...process.env, BERTH_SIM_MUTANT: mutant },
      }),
    });
    let answer: Hunted | null = null;
    child.on('message', (message: Hunted | null) => {
      answer = message;
    });
    child.on('error', reject);
    child.on('exit', (code) =>
      code === 0 ? resolve(answer) : reject(new Error(`the hunt for ${mutant} ended with ${code}`)),
    );
  });
}

/** Looks for mutants, and holds each find against the same seed without the mutant. */
export class Hunt {
  readonly #own = new Map<number, Promise<Hunted | null>>();
  /** Seeds that the program itself fails, and how: faults of it, or of the simulation. */
  readonly ownFailures = new Map<number, string>();

  /** The first seed that fails with the mutant and holds without it; null: there is none among {@link MOST_SEEDS}. */
  async find(mutant: string): Promise<Hunted | null> {
    for (let first = 1; first <= MOST_SEEDS; ) {
      const hunted = await ask(first, MOST_SEEDS, mutant);
      if (hunted === null) return null;
      const own = await this.#withoutMutant(hunted.seed);
      if (own === null) return hunted;
      this.ownFailures.set(hunted.seed, own.message);
      first = hunted.seed + 1;
    }
    return null;
  }

  #withoutMutant(seed: number): Promise<Hunted | null> {
    const known = this.#own.get(seed) ?? ask(seed, seed);
    this.#own.set(seed, known);
    return known;
  }
}
