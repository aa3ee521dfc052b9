import { it } from 'vitest';
import { expectConformant } from './matrix.ts';
import { variations } from './variations.ts';

it.each(variations.map((variation) => [variation.id, variation] as const))(
  '%s is conformant',
  (_id, variation) => expectConformant(variation),
);
