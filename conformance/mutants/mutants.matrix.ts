import { describe, it } from 'vitest';
import { expectKilled } from './matrix.ts';
import { mutants } from './mutants.ts';

describe.each(Object.entries(mutants))('%s', (_chapter, list) => {
  it.each(list.map((mutant) => [mutant.id, mutant] as const))('catches %s', (_id, mutant) =>
    expectKilled(mutant),
  );
});
