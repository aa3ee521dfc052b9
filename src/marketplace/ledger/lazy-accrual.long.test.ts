import { expect, it } from 'vitest';
import { expectSameLives } from './lives.fixture.ts';

it.each(Array.from({ length: 12 }, (_, index) => 100 + index))(
  'mails, ends and charges the same as a full check in every round, in long random lives: seed %i',
  async (seed) => {
    const sliceMs = [null, 10_000, null, 300_000][seed % 4] ?? null;
    const { mails } = await expectSameLives({ seed, rounds: 800, teams: 6, sliceMs });
    expect(mails).toBeGreaterThan(30);
  },
);
