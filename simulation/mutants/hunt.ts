import { rmSync } from 'node:fs';
import { prepare } from '../clients/accounts.ts';
import { run } from '../run.ts';

/** What a hunt came to. */
export interface Hunted {
  invariant: string;
  message: string;
  /** How many seeds it took, the one that showed it included. */
  seeds: number;
}

export const HUNT_COMMANDS = 100;
export const MOST_SEEDS = 500;

/** Runs one seed in this process; null: every invariant held. */
async function probe(seed: string): Promise<string | null> {
  const prepared = await prepare();
  try {
    const { failure } = await run(prepared, seed, HUNT_COMMANDS);
    return failure?.message ?? null;
  } finally {
    rmSync(prepared.folder, { recursive: true, force: true });
  }
}

/** Runs seeds in this process, which has the mutant loaded, until an invariant is broken; null: none was. */
async function hunt(): Promise<Hunted | null> {
  const prepared = await prepare();
  try {
    for (let seed = 1; seed <= MOST_SEEDS; seed++) {
      const { failure } = await run(prepared, String(seed), HUNT_COMMANDS);
      if (failure !== undefined)
        return { invariant: failure.invariant, message: failure.message, seeds: seed };
    }
    return null;
  } finally {
    rmSync(prepared.folder, { recursive: true, force: true });
  }
}

if (process.send !== undefined) {
  const [, , only] = process.argv;
  process.send(only === undefined ? await hunt() : await probe(only));
  if (process.connected) process.disconnect();
}
