import { type ChildProcess, fork } from 'node:child_process';
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
  openstack: 60,
  marketplace: 40,
};
export const MOST_SEEDS = 500;

/** The seeds that a process of the hunt runs until one breaks an invariant. */
export interface Chase {
  subject: Subject;
  first: number;
  last: number;
}

/** A process with a mutant, or with the program as it is. Loading the program takes longer than a seed. */
class Hunter {
  readonly #child: ChildProcess;

  constructor(mutant?: string) {
    this.#child = fork(new URL('hunter.ts', import.meta.url), {
      ...(mutant !== undefined && {
        execArgv: ['--import', new URL('hook.ts', import.meta.url).href],
        env: { ...process.env, BERTH_SIM_MUTANT: mutant },
      }),
    });
  }

  async run(chase: Chase): Promise<Hunted | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Hunted | null>();
    const fail = (cause: unknown): void => reject(new Error(`a process of the hunt ended: ${cause}`));
    this.#child.once('message', resolve).once('error', fail).once('exit', fail);
    this.#child.send(chase);
    return promise.finally(() => this.#child.off('error', fail).off('exit', fail));
  }

  end(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

async function withMutant(id: string, chase: Chase): Promise<Hunted | null> {
  const hunter = new Hunter(id);
  try {
    return await hunter.run(chase);
  } finally {
    hunter.end();
  }
}

/** Looks for mutants, and holds each find against the same seed without the mutant. */
export class Hunt {
  readonly #own = new Map<string, Promise<Hunted | null>>();
  /** Without a mutant, and free. */
  readonly #sound: Hunter[] = [];
  /** Seeds that the program itself fails, and how: faults of it, or of the simulation. */
  readonly ownFailures = new Map<string, string>();

  /** The first seed that fails with the mutant and holds without it; null: there is none among {@link MOST_SEEDS}. */
  async find({ id, subject = 'orchestrator' }: Pick<Mutant, 'id' | 'subject'>): Promise<Hunted | null> {
    for (let first = 1; first <= MOST_SEEDS; ) {
      const hunted = await withMutant(id, { subject, first, last: MOST_SEEDS });
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
    const hunted = await withMutant(id, { subject, first: seed, last: seed });
    if (hunted === null) return null;
    const own = await this.#withoutMutant(subject, seed);
    if (own === null) return hunted;
    this.ownFailures.set(`${subject} ${seed}`, own.message);
    return null;
  }

  #withoutMutant(subject: Subject, seed: number): Promise<Hunted | null> {
    const name = `${subject} ${seed}`;
    const known = this.#own.get(name) ?? this.#runSound({ subject, first: seed, last: seed });
    this.#own.set(name, known);
    return known;
  }

  async #runSound(chase: Chase): Promise<Hunted | null> {
    const hunter = this.#sound.pop() ?? new Hunter();
    const hunted = await hunter.run(chase);
    this.#sound.push(hunter);
    return hunted;
  }

  /** Ends its processes. */
  end(): void {
    for (const hunter of this.#sound) hunter.end();
  }
}
