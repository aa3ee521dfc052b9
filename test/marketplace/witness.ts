import type { Instance } from '../../src/contract/instance.ts';
import type { Deployment } from '../../src/marketplace/contract/deployment.ts';
import { type Chapter, integral, type KnownDiscount } from './oracle.ts';
import { type ListedOffer, offersOf, toMicroUsd } from './price-list.ts';
import type { MarketUser, SevenProviders } from './seven-providers.ts';

/** What the witness knows of a deployment. */
export interface Testimony {
  id: string;
  team: string;
  offer: ListedOffer;
  chapters: Chapter[];
  /** As the API showed it last. */
  shown: Deployment;
  /** What the provider's list said when it was last in it. */
  instance: Instance | null;
}

export interface VolumeTestimony {
  volumeId: string;
  id: string;
  team: string;
  provider: string;
  region: string;
  sizeGb: number;
  chapters: Chapter[];
}

/**
 * Sees what users see, over the API, and what the providers' own lists say, after each step; and what a month costs
 * follows from that and from the price lists alone.
 */
export class Witness {
  readonly deployments = new Map<string, Testimony>();
  readonly volumes = new Map<string, VolumeTestimony>();
  /** By team. */
  readonly discounts = new Map<string, KnownDiscount[]>();
  readonly credits = new Map<string, bigint>();
  /** What does not fit together. */
  readonly contradictions: string[] = [];
  /** How often each thing was seen. */
  readonly counts = new Map<string, number>();
  readonly #world: SevenProviders;
  readonly #users: readonly MarketUser[];
  /** When a process of the marketplace was last killed: what it had seen and not written is lost. */
  killedAt = 0;

  constructor(world: SevenProviders, users: readonly MarketUser[]) {
    this.#world = world;
    this.#users = users;
    for (const { teamId } of users) this.discounts.set(teamId, []);
  }

  /** Looks at everything. */
  async look(): Promise<void> {
    for (const provider of this.#world.providers.keys()) await this.#readList(provider);
    for (const user of this.#users) {
      const { teamId, key } = user;
      const reply = await this.#world.ask('GET', `/api/deployments?teamId=${teamId}&status=active`, { key });
      const active = reply.body as Deployment[];
      for (const shown of active) this.#see(shown);
      const missing = this.live(teamId).filter(({ id }) => !active.some((shown) => shown.id === id));
      for (const { id } of missing) await this.read(user, id);
    }
  }

  /** Looks at one deployment. */
  async read({ key }: MarketUser, id: string): Promise<Deployment> {
    const { body } = await this.#world.ask('GET', `/api/deployments/${id}`, { key });
    const shown = body as Deployment;
    await this.#readList(shown.providerId);
    this.#see(shown);
    return shown;
  }

  /** A team's deployments that had not ended when they were seen last. */
  live(team: string): Testimony[] {
    return [...this.deployments.values()].filter(
      (it) => it.team === team && ['deploying', 'running', 'stopped'].includes(it.shown.status),
    );
  }

  /** That something was seen once more. */
  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** What a team's deployment or volume has cost by now. */
  costOf({ team, chapters }: Pick<Testimony, 'team' | 'chapters'>, until = this.#world.clock.now()): bigint {
    return integral(chapters, this.discounts.get(team) ?? [], until);
  }

  /** What a team has left now. */
  balanceOf(team: string): bigint {
    const used = [...this.deployments.values(), ...this.volumes.values()]
      .filter((it) => it.team === team)
      .reduce((sum, it) => sum + this.costOf(it), 0n);
    return (this.credits.get(team) ?? 0n) - used;
  }

  async #readList(provider: string): Promise<void> {
    for (const instance of await this.#world.provider(provider).instances()) {
      const [, tail] = /^bm-[0-9a-f]+-([0-9a-f]+)/.exec(instance.name ?? '') ?? [];
      const known = this.deployments.get(`dep-${tail}`);
      if (known !== undefined) known.instance = instance;
    }
  }

  #see(shown: Deployment): void {
    const known = this.deployments.get(shown.id) ?? this.#meet(shown);
    const before = known.shown;
    known.shown = shown;
    if (shown.status !== before.status) this.#turn(known, before);
    else if (shown.status === 'running' && shown.originalHourlyRate !== before.originalHourlyRate)
      this.#reprice(known);
  }

  #meet(shown: Deployment): Testimony {
    const offer = offersOf(shown.providerId).find(({ offerId }) => offerId === shown.offerId);
    if (offer === undefined) throw new Error(`${shown.providerId} does not sell ${shown.offerId}`);
    const known: Testimony = {
      id: shown.id,
      team: shown.teamId,
      offer,
      chapters: [],
      instance: null,
      shown: { ...shown, status: 'deploying' },
    };
    this.deployments.set(shown.id, known);
    return known;
  }

  #turn(known: Testimony, before: Deployment): void {
    const { shown, chapters, offer } = known;
    this.count(`${before.status} → ${shown.status}`);
    if (shown.status === 'running') {
      const at = before.status === 'deploying' ? timeOf(shown.startedAt) : this.#changedAt(known);
      const microUsdPerHour = this.#runningPrice(known);
      chapters.push({ at, state: 'running', microUsdPerHour });
    } else if (shown.status === 'stopped') {
      const at = this.#changedAt(known);
      if (timeOf(shown.pausedAt) !== at)
        this.contradict(known, `pausedAt is ${shown.pausedAt}, and its provider says ${iso(at)}`);
      chapters.push({ at, state: 'stopped', microUsdPerHour: offer.stoppedPrice ?? 0n });
    } else {
      const at = timeOf(shown.stoppedAt);
      if (shown.status === 'terminated-provider') this.#checkReclaim(known, at);
      if (chapters.length === 0 && shown.startedAt !== null)
        chapters.push({
          at: timeOf(shown.startedAt),
          state: 'running',
          microUsdPerHour: this.#runningPrice(known),
        });
      if (chapters.length > 0) chapters.push({ at, state: 'over', microUsdPerHour: 0n });
    }
  }

  /** Spot prices move; all others are those of the list. */
  #runningPrice({ offer, shown }: Testimony): bigint {
    if (offer.instanceType === 'SPOT') return toMicroUsd(shown.originalHourlyRate);
    return offer.price;
  }

  #reprice(known: Testimony): void {
    this.count('spot price');
    if (known.offer.instanceType !== 'SPOT')
      this.contradict(known, 'its price changed, and it is no spot instance');
    const price = known.instance?.price_per_hour;
    if (price !== known.shown.originalHourlyRate)
      this.contradict(known, `it costs ${known.shown.originalHourlyRate}, and its provider says ${price}`);
    const microUsdPerHour = toMicroUsd(known.shown.originalHourlyRate);
    known.chapters.push({ at: this.#world.clock.now(), state: 'running', microUsdPerHour });
  }

  /** When the provider says that it became what it is. */
  #changedAt({ id, instance }: Testimony): number {
    if (instance === null) throw new Error(`${id} changed, and no list ever had its instance`);
    return Date.parse(instance.updated_at);
  }

  /** A team pays for exactly the time that the provider confirmed. */
  #checkReclaim(known: Testimony, at: number): void {
    const provider = this.#world.provider(known.shown.providerId);
    const reportedAt = provider.reportedAt.get(known.instance?.id ?? '') ?? 0;
    const isForgotten = this.killedAt >= reportedAt;
    if (at > reportedAt || (at < reportedAt && !isForgotten))
      this.contradict(
        known,
        `it ended at ${iso(at)}, and its provider told of it last at ${iso(reportedAt)}`,
      );
  }

  contradict({ id, shown }: Testimony, what: string): void {
    this.contradictions.push(`${iso(this.#world.clock.now())} ${id} at ${shown.providerId}: ${what}`);
  }
}

function timeOf(timestamp: string | null): number {
  if (timestamp === null) throw new Error('expected a timestamp, got null');
  return Date.parse(timestamp);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
