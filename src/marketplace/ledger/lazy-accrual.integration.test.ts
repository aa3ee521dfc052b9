import { expect, it } from 'vitest';
import { expectSameLives } from './lives.fixture.ts';

it.each([
  [2, null],
  [3, 60_000],
])(
  'mails, ends and charges the same as a full check in every round, in random lives: seed %i, slices of %s [lazy-as-eager]',
  async (seed, sliceMs) => {
    const { mails, ended, slices } = await expectSameLives({ seed, rounds: 240, teams: 5, sliceMs });
    expect(Math.min(mails, ended, slices)).toBeGreaterThan(10);
  },
);
