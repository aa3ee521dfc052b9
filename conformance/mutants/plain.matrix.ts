import { describe, it } from 'vitest';
import { recognitionMutants } from './access/recognition.mutants.ts';
import { expectNoFailureInPlain, expectUnseenInUsual } from './plain.ts';
import { variations } from './variations.ts';

describe('a plain run', () => {
  it.each(variations.map((variation) => [variation.id, variation] as const))(
    'fails nowhere in %s',
    (_id, variation) => expectNoFailureInPlain(variation),
  );
});

describe('a usual run', () => {
  it.each(recognitionMutants.map((mutant) => [mutant.id, mutant] as const))(
    'sees nothing in %s',
    (_id, mutant) => expectUnseenInUsual(mutant),
  );
});
