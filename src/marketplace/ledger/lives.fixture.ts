import { expect } from 'vitest';
import { Dice } from '../../../test/marketplace/dice.ts';
import { defaultOptions } from '../model/options.ts';
import { Accrual } from './accrual.ts';
import { FormerAccrual } from './former-accrual.fixture.ts';
import { type BooksOfStore, openBooks } from './ledger.fixture.ts';
import { Fates } from './lives-events.fixture.ts';
import { openWorld, type World } from './lives-world.fixture.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Time between two rounds of the billing job. */
const ROUND_MS = 30_000;
const DOLLAR = 1_000_000;

export interface Lives {
  seed: number;
  rounds: number;
  teams: number;
  sliceMs: number | null;
}

/**
 * Compares the job without scheduling with the real one on random events, with rounds of 30 s, restarts and downtime.
 * Both must mail and end the same at the same moments, and show and charge the same amounts.
 */
export async function expectSameLives(
  { seed, rounds, teams, sliceMs }: Lives,
  open: () => Promise<BooksOfStore> = () => openBooks(),
) {
  const dice = new Dice(seed);
  const teamIds = Array.from({ length: teams }, (_, index) => `t${index}`);
  const worlds = [
    await openWorld(
      teamIds,
      await open(),
      (deps) => new FormerAccrual({ ...deps, options: withSlices(300_000) }),
    ),
    await openWorld(teamIds, await open(), (deps) => new Accrual({ ...deps, options: withSlices(sliceMs) })),
  ] as const;
  const both = async (work: (world: World) => Promise<void> | void) => {
    for (const world of worlds) await work(world);
  };
  const fates = new Fates(dice);
  for (const teamId of teamIds) {
    const amountMicroUsd = dice.between(1, 40 * DOLLAR);
    await both((world) => world.take({ do: 'credit', teamId, kind: 'grant', amountMicroUsd }));
  }
  for (let round = 0; round < rounds; round++) {
    const { now } = worlds[0];
    const events = teamIds.flatMap((teamId) => [...fates.of(teamId, now)]);
    const confirmed = fates.confirmed(now);
    const isOff = dice.chance(0.01);
    await both(async (world) => {
      for (const event of events) await world.take(event);
      if (isOff) await world.restart();
      await world.observe(confirmed);
      await world.round();
      if (round % 10 === 0) await world.look(teamIds);
    });
    const passMs = isOff ? dice.between(1, 90 * MINUTE_MS) : ROUND_MS;
    await both((world) => world.pass(passMs));
  }
  const [former, lazy] = [await worlds[0].lived(), await worlds[1].lived()];
  expect(lazy.mails).toEqual(former.mails);
  expect(lazy.ended).toEqual(former.ended);
  expect(lazy.shown).toEqual(former.shown);
  expect([lazy.findings, former.findings]).toEqual([[], []]);
  return { mails: lazy.mails.length, ended: lazy.ended.length, slices: lazy.slices };
}

const { billing } = defaultOptions;
/** Shorter than the defaults, so that a run of some hours passes all of them. */
const zeroBalance = {
  graceMs: 10 * MINUTE_MS,
  stoppedGraceMs: HOUR_MS,
  volumes: { keepMs: 2 * HOUR_MS, noticesMs: [HOUR_MS, 20 * MINUTE_MS] },
};
const withSlices = (sliceMs: number | null) => ({
  ...defaultOptions,
  billing: { ...billing, sliceMs, zeroBalance },
});
