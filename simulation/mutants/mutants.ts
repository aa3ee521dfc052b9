import type { AnyPlant } from '../runner/subject.ts';
import { engineMutants } from './engines.ts';
import { marketplaceMutants } from './marketplace.ts';
import { isPatch, type Mutant } from './mutant.ts';
import { orchestratorMutants } from './orchestrator.ts';

/**
 * Every planted fault, in the order of seeds.md. Nothing here loads production source: the hook would patch it too late.
 */
export const mutants: readonly Mutant[] = [...orchestratorMutants, ...engineMutants, ...marketplaceMutants];

/** @throws {Error} if there is none with this id */
export function mutantOf(id: string): Mutant {
  const mutant = mutants.find((candidate) => candidate.id === id);
  if (mutant === undefined) throw new Error(`there is no mutant ${id}`);
  return mutant;
}

/** What a mutant changes in a run; undefined: it is none, or a patch, which the hook applies. */
export function plantOf(id: string | undefined): AnyPlant | undefined {
  if (id === undefined) return undefined;
  const { plant } = mutantOf(id);
  return isPatch(plant) ? undefined : plant;
}
