import { type ChildProcess, fork } from 'node:child_process';
import type { Subject } from '../runner/subject.ts';
import { isPatch, type Mutant } from './mutant.ts';

/** What a hunt came to. */
export interface Hunted {
  invariant: string;
  message: string;
  /** The first seed that showed it. */
  seed: number;
}

const HUNT_COMMANDS: Readonly<Record<Subject, number>> = {
  orchestrator: 40,
  platforms: 40,
  hosts: 40,
  libvirt: 30,
  incus: 30,
  exec: 30,
  openstack: 30,
  marketplace: 40,
};
export const MOST_SEEDS = 500;

/** The seeds that a process of the hunt runs until one breaks an invariant. */
export interface Chase {
  simulation: Subject;
  /** The id of the mutant; absent: the program as it is, or as its process has patched it. */
  mutant?: string;
  commands: number;
  first: number;
  last: number;
}

/** A process that runs seeds. Loading the program takes longer than a seed. */
class Hunter {
  readonly #child: ChildProcess;

  /** `patched`: the id of a mutant whose patch the process loads. */
  constructor(patched?: string) {
    this.#child = fork(new URL('hunter.ts', import.meta.url), {
      ...(patched !== undefined && {
        execArgv: ['--import', new URL('hook.ts', import.meta.url).href],
        env: { ...process.env, BERTH_SIM_MUTANT: patched },
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

/** Looks for mutants, and holds each find against the same seed without the mutant. */
export class Hunt {
  readonly #own = new Map<string, Promise<Hunted | null>>();
  /** Without a patch, and free. */
  readonly #free: Hunter[] = [];
  /** Seeds that the program itself fails, and how: faults of it, or of the simulation. */
  readonly ownFailures = new Map<string, string>();

  /** The first of these seeds that fails with the mutant and holds without it; null: there is none. */
  async find(mutant: Mutant, seeds: { first: number; last: number }): Promise<Hunted | null> {
    const { simulation, commands = HUNT_COMMANDS[simulation] } = mutant;
    for (let { first } = seeds; first <= seeds.last; ) {
      const hunted = await this.#withMutant(mutant, { simulation, commands, first, last: seeds.last });
      if (hunted === null) return null;
      const { seed } = hunted;
      const own = await this.#withoutMutant({ simulation, commands, first: seed, last: seed });
      if (own === null) return hunted;
      this.ownFailures.set(`${simulation} ${seed}`, own.message);
      first = seed + 1;
    }
    return null;
  }

  async #withMutant({ id, plant }: Mutant, chase: Chase): Promise<Hunted | null> {
    if (!isPatch(plant)) return this.#run({ ...chase, mutant: id });
    const hunter = new Hunter(id);
    try {
      return await hunter.run(chase);
    } finally {
      hunter.end();
    }
  }

  #withoutMutant(chase: Chase): Promise<Hunted | null> {
    const name = `${chase.simulation} ${chase.first} ${chase.commands}`;
    const known = this.#own.get(name) ?? this.#run(chase);
    this.#own.set(name, known);
    return known;
  }

  async #run(chase: Chase): Promise<Hunted | null> {
    const hunter = this.#free.pop() ?? new Hunter();
    const hunted = await hunter.run(chase);
    this.#free.push(hunter);
    return hunted;
  }

  /** Ends its processes. */
  end(): void {
    for (const hunter of this.#free) hunter.end();
  }
}
