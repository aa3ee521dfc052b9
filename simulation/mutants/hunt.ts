import { fork } from 'node:child_process';
import type { Subject } from '../runner/subject.ts';
import type { Mutant } from './mutant.ts';

/** What a hunt came to. */
export interface Hunted {
  invariant: string;
  message: string;
  /** The first seed that showed it, of 1, 2, 3 …: so many were needed. */
  seed: number;
}

export const HUNT_COMMANDS: Readonly<Record<Subject, number>> = {
  orchestrator: 100,
  platforms: 100,
  hosts: 100,
  libvirt: 60,
  incus: 60,
  exec: 60,
  marketplace: 40,
};
export const MOST_SEEDS = 500;

/** Runs the seeds from `first` to `last` in a process of its own, with the mutant or as the program is. */
function call(subject: Subject, first: number, last: number, mutant?: string): Promise<Hunted | null> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('hunter.ts', import.meta.url), [subject, String(first), String(last)], {
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
  readonly #own = new Map<string, Promise<Hunted | null>>();
  /** Seeds that the program itself fails, and how: faults of it, or of the simulation. */
  readonly ownFailures = new Map<string, string>();

  /** The first seed that fails with the mutant and holds without it; null: there is none among {@link MOST_SEEDS}. */
  async find({ id, subject = 'orchestrator' }: Pick<Mutant, 'id' | 'subject'>): Promise<Hunted | null> {
    for (let first = 1; first <= MOST_SEEDS; ) {
      const hunted = await call(subject, first, MOST_SEEDS, id);
      if (hunted === null) return null;
      const own = await this.#withoutMutant(subject, hunted.seed);
      if (own === null) return hunted;
      this.ownFailures.set(`${subject} ${hunted.seed}`, own.message);
      first = hunted.seed + 1;
    }
    return null;
  }

  /** Whether it is that seed that fails with the mutant, and holds without it. */
  async repeat(
    { id, subject = 'orchestrator' }: Pick<Mutant, 'id' | 'subject'>,
    seed: number,
  ): Promise<Hunted | null> {
    const hunted = await call(subject, seed, seed, id);
    if (hunted === null) return null;
    const own = await this.#withoutMutant(subject, seed);
    if (own === null) return hunted;
    this.ownFailures.set(`${subject} ${seed}`, own.message);
    return null;
  }

  #withoutMutant(subject: Subject, seed: number): Promise<Hunted | null> {
    const name = `${subject} ${seed}`;
    const known = this.#own.get(name) ?? call(subject, seed, seed);
    this.#own.set(name, known);
    return known;
  }
}
