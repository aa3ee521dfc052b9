import { describe, it } from 'vitest';
import { expectNoFailureInPlain } from './plain.ts';
import { variations } from './variations.ts';

describe('a plain run', () => {
  it.each(variations.map((variation) => [variation.id, variation] as const))(
    'fails nowhere in %s',
    (_id, variation) => expectNoFailureInPlain(variation),
  );
});
