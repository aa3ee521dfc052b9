import { assignDiscount } from '../../src/marketplace/discounts/discounts.ts';
import { ASSESSED, volumePercentage } from '../../src/marketplace/ledger/assess-volume.ts';
import { topUp } from '../../src/marketplace/ledger/credit.ts';
import { verifyLedger } from '../../src/marketplace/ledger/verify-ledger.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { type Comparison, compareBills } from './compare-bills.ts';
import { Dice } from './dice.ts';
import { integral } from './oracle.ts';
import { Population } from './population.ts';
import { type MarketUser, type ProviderLetter, SevenProviders } from './seven-providers.ts';
import type { SimulatedProvider } from './simulated-provider.ts';
import { Witness } from './witness.ts';

export interface MonthOptions {
  seed: number;
  days: number;
  letters?: readonly ProviderLetter[];
  /** How much happens between two steps, from 0 to 1. */
  bustle: number;
  /** Steps are about so long. */
  stepMinutes: number;
}

export interface MonthReport {
  comparisons: Comparison[];
  contradictions: string[];
  /** What `verify-ledger` finds. */
  findings: unknown[];
  counts: ReadonlyMap<string, number>;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIERS = [
  { spendMicroUsd: 150_000_000, percentage: 5 },
  { spendMicroUsd: 1_000_000_000, percentage: 10 },
  { spendMicroUsd: 2_500_000_000, percentage: 15 },
];
/** What was used in the last hours before a midnight may have been charged after it. */
const LATE_MS = 26 * HOUR;

/** Lives through so many days, ends everything, and compares each bill with the exact integral. */
export async function liveThrough(options: MonthOptions): Promise<MonthReport> {
  const { letters, stepMinutes } = options;
  const market = new SevenProviders({
    ...(letters !== undefined && { letters }),
    watchIntervalMs: stepMinutes * MINUTE,
    leaseMs: 3 * stepMinutes * MINUTE,
    options: {
      polling: {
        intervalMs: [2 * MINUTE, stepMinutes * MINUTE],
        sweepMs: 4 * HOUR,
        catalogMs: 6 * HOUR,
        // A restart is looked for once in a step.
        actionMs: 3 * stepMinutes * MINUTE,
      },
      billing: {
        sliceMs: HOUR,
        rollUp: { afterMs: null, periodMs: 24 * HOUR },
        volumeDiscounts: TIERS,
        zeroBalance: {
          graceMs: 2 * HOUR,
          stoppedGraceMs: 48 * HOUR,
          // Only its user ends a volume: the witness would not learn of another end.
          volumes: { keepMs: 365 * DAY, noticesMs: [] },
        },
      },
    },
  });
  try {
    await market.start();
    return await new Month(market, options).live();
  } finally {
    await market.close();
  }
}

class Month {
  readonly #market: SevenProviders;
  readonly #options: MonthOptions;
  readonly #dice: Dice;
  #users: MarketUser[] = [];
  #witness!: Witness;
  #population!: Population;
  readonly #begunAt: number;
  #topUps = 0;
  #killedOn = -1;
  readonly #moodUntil = new Map<string, number>();

  constructor(market: SevenProviders, options: MonthOptions) {
    this.#market = market;
    this.#options = options;
    this.#dice = new Dice(options.seed);
    this.#begunAt = market.clock.now();
  }

  async live(): Promise<MonthReport> {
    await this.#settleIn();
    const end = this.#begunAt + this.#options.days * DAY;
    while (this.#market.clock.now() < end) {
      await this.#step();
      await this.#happen();
    }
    await this.#wind();
    return this.#report();
  }

  get #now(): number {
    return this.#market.clock.now();
  }

  async #settleIn(): Promise<void> {
    const credits = [20_000, 20_000, 20_000, 60];
    for (const [index, credit] of credits.entries())
      this.#users.push(
        await this.#market.addUser(`user-${index}@example.com`, credit, { minimumRuntimeMinutes: 45 }),
      );
    this.#witness = new Witness(this.#market, this.#users);
    for (const [index, { teamId }] of this.#users.entries())
      this.#witness.credits.set(teamId, BigInt(credits[index] ?? 0) * 1_000_000n);
    this.#population = new Population(this.#market, this.#witness, this.#dice);
  }

  /** Time goes on by about a step, and stops at each midnight. */
  async #step(): Promise<void> {
    const { stepMinutes } = this.#options;
    const midnight = (Math.floor(this.#now / DAY) + 1) * DAY;
    const wanted = this.#now + this.#dice.between(stepMinutes * 30_000, stepMinutes * 90_000);
    const at = Math.min(wanted, midnight);
    await this.#market.pass(at - this.#now);
    for (const [id, until] of this.#moodUntil)
      if (until <= this.#now) {
        this.#market.provider(id).mood = 'up';
        this.#moodUntil.delete(id);
      }
    if (at === midnight) await this.#readVolumeDiscounts(midnight);
    await this.#witness.look();
  }

  async #happen(): Promise<void> {
    const { bustle } = this.#options;
    for (const user of this.#users) if (this.#dice.chance(bustle)) await this.#population.act(user);
    if (this.#dice.chance(bustle)) await this.#providersAct();
    if (this.#dice.chance(bustle / 20)) await this.#discount();
    if (this.#dice.chance(bustle / 30)) await this.#topUp();
    if (this.#dice.chance(bustle / 40)) this.#turnMood();
    const hour = (this.#now % DAY) / HOUR;
    const day = Math.floor((this.#now - this.#begunAt) / DAY);
    // Not at night: what a day was charged is held against the oracle at midnight.
    if (this.#killedOn !== day && day % 5 === 1 && hour > 4 && hour < 20) {
      this.#killedOn = day;
      await this.#kill();
    }
    const last = [...this.#market.providers.keys()].at(-1) ?? '';
    if (day === Math.floor(this.#options.days / 2) && !this.#witness.counts.has('a day down'))
      this.#setMood(last, 'down', DAY, 'a day down');
  }

  /** What providers do to instances of their own accord. */
  async #providersAct(): Promise<void> {
    const known = this.#dice.pick(
      this.#users
        .flatMap(({ teamId }) => this.#witness.live(teamId))
        .filter(
          ({ shown, offer }) =>
            shown.status === 'running' && (offer.instanceType === 'SPOT' || offer.stoppedPrice !== null),
        ),
    );
    if (known?.instance?.status !== 'ONLINE') return;
    const { offer, instance, shown } = known;
    const provider = this.#market.provider(shown.providerId);
    if (offer.instanceType === 'SPOT') {
      if (this.#dice.chance(0.3)) {
        this.#witness.count('reclaim');
        return provider.take(instance.id);
      }
      // Never so high that it is not believed.
      const price = (Number(offer.price) * this.#dice.between(40, 250)) / 100;
      return provider.reprice(instance.id, Math.round(price));
    }
    if (offer.stoppedPrice !== null && this.#dice.chance(0.4)) {
      this.#witness.count('power off');
      return provider.powerOff(instance.id);
    }
  }

  async #discount(): Promise<void> {
    const user = this.#dice.pick(this.#users);
    if (user === undefined) return;
    const startsAt = this.#now + this.#dice.between(0, 2 * DAY);
    const endsAt = this.#dice.chance(0.8) ? startsAt + this.#dice.between(HOUR, 6 * DAY) : null;
    const percentage = this.#dice.between(5, 50);
    await assignDiscount(this.#deps, { teamId: user.teamId, percentage, startsAt, endsAt });
    this.#witness.discounts.get(user.teamId)?.push({ percentage, from: startsAt, until: endsAt });
    this.#witness.count('discount');
  }

  async #resume({ teamId, key }: MarketUser, id: string): Promise<void> {
    await this.#pay(teamId, 50_000_000);
    await this.#market.ask('POST', `/api/deployments/${id}/resume`, { key });
    await this.#witness.look();
  }

  async #topUp(): Promise<void> {
    const user = this.#dice.pick(this.#users);
    if (user !== undefined) await this.#pay(user.teamId, this.#dice.between(1_000_000, 60_000_000));
  }

  async #pay(teamId: string, amountMicroUsd: number): Promise<void> {
    const reference = `payment-${this.#topUps++}`;
    await topUp(this.#deps, { teamId, amountMicroUsd, reference });
    // A payment that is reported twice counts once.
    await topUp(this.#deps, { teamId, amountMicroUsd, reference });
    const { credits } = this.#witness;
    credits.set(teamId, (credits.get(teamId) ?? 0n) + BigInt(amountMicroUsd));
    this.#witness.count('top-up');
  }

  #turnMood(): void {
    const id = this.#dice.pick([...this.#market.providers.keys()]) ?? '';
    const mood = this.#dice.pick(['down', 'failing', 'garbage'] as const) ?? 'down';
    if (!this.#moodUntil.has(id)) this.#setMood(id, mood, this.#dice.between(HOUR / 2, 4 * HOUR), mood);
  }

  #setMood(id: string, mood: SimulatedProvider['mood'], ms: number, name: string): void {
    this.#market.provider(id).mood = mood;
    this.#moodUntil.set(id, this.#now + ms);
    this.#witness.count(name);
  }

  /** The process is gone, and another one goes on after a while. */
  async #kill(): Promise<void> {
    this.#witness.killedAt = this.#now;
    this.#witness.count('kill');
    await this.#market.kill();
    await this.#market.pass(this.#dice.between(MINUTE, 40 * MINUTE));
    await this.#market.startMarketplace();
    await this.#witness.look();
  }

  /**
   * What an operator sees of the volume-based discounts; each must be what the team has spent by the oracle. What was
   * used but not charged by then makes two answers right.
   */
  async #readVolumeDiscounts(midnight: number): Promise<void> {
    // On a busy machine the round that assesses them may still be under way.
    await this.#market.until(
      async () => (await this.#market.life.store.read.settings.get(ASSESSED)) === String(midnight),
      'the volume discounts of this midnight are assessed',
    );
    for (const { teamId } of this.#users) {
      const known = this.#witness.discounts.get(teamId) ?? [];
      const discounts = (await this.#market.life.store.read.discounts.ofTeam(teamId)).filter(
        ({ source, startsAt }) => source === 'volume' && startsAt === midnight,
      );
      const holding = (await this.#market.life.store.read.discounts.ofTeam(teamId)).find(
        ({ source, endsAt }) => source === 'volume' && endsAt === null,
      );
      const [least, most] = this.#spentBy(teamId, midnight).map((spent) =>
        volumePercentage(TIERS, Number(spent)),
      );
      const percentage = holding?.percentage ?? 0;
      if (percentage < (least ?? 0) || percentage > (most ?? 0))
        this.#witness.contradictions.push(
          `${new Date(midnight).toISOString()} ${teamId}: ${percentage} % for what earns ${least} to ${most} %`,
        );
      const former = known.find((it) => 'isVolume' in it && it.until === null);
      if (former !== undefined && (discounts.length > 0 || holding === undefined)) former.until = midnight;
      for (const it of discounts) {
        this.#witness.count('volume discount');
        known.push(
          Object.assign({ percentage: it.percentage, from: it.startsAt, until: null }, { isVolume: true }),
        );
      }
    }
  }

  #spentBy(teamId: string, midnight: number): [least: bigint, most: bigint] {
    const { deployments, volumes, discounts } = this.#witness;
    const own = [...deployments.values(), ...volumes.values()].filter(({ team }) => team === teamId);
    const known = discounts.get(teamId) ?? [];
    const until = (at: number) => own.reduce((sum, { chapters }) => sum + integral(chapters, known, at), 0n);
    return [until(midnight - LATE_MS), until(midnight)];
  }

  /** Everything is ended, and all that is left to see is seen. */
  async #wind(): Promise<void> {
    for (const provider of this.#market.providers.values()) provider.mood = 'up';
    for (let round = 0; round < 40; round++) {
      await this.#market.pass(20 * MINUTE + 7);
      await this.#witness.look();
      const open = await this.#endAll();
      if (open === 0) break;
    }
    await this.#market.life.marketplace.accrual.run();
    await this.#market.settle();
  }

  async #endAll(): Promise<number> {
    for (const user of this.#users)
      for (const known of this.#witness.live(user.teamId)) {
        await this.#population.terminate(user, known);
        // One that ran too short has to run on; a team without credit has to pay first.
        if (known.shown.status === 'stopped') await this.#resume(user, known.id);
      }
    const volumes = [...this.#witness.volumes.values()].filter(
      ({ chapters }) => chapters.at(-1)?.state !== 'over',
    );
    for (const volume of volumes) {
      const owner = this.#users.find(({ teamId }) => teamId === volume.team);
      if (owner !== undefined) await this.#population.removeVolume(owner, volume);
    }
    return (
      volumes.filter(({ chapters }) => chapters.at(-1)?.state !== 'over').length +
      this.#users.flatMap(({ teamId }) => this.#witness.live(teamId)).length
    );
  }

  async #report(): Promise<MonthReport> {
    const { findings } = await verifyLedger(this.#market.life.store, this.#now);
    return {
      comparisons: await compareBills(this.#market, this.#witness, this.#users),
      findings,
      contradictions: this.#witness.contradictions,
      counts: this.#witness.counts,
    };
  }

  get #deps() {
    return { store: this.#market.life.store, clock: this.#market.clock, random: systemRandom };
  }
}
