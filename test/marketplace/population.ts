import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { Dice } from './dice.ts';
import { bestPercentage } from './oracle.ts';
import { type ListedOffer, offersOf, volumePrice } from './price-list.ts';
import type { MarketReply, MarketUser, SevenProviders } from './seven-providers.ts';
import type { Testimony, VolumeTestimony, Witness } from './witness.ts';

/** Where volumes are made. */
const VOLUME_PLACES = [
  { provider: 'provider-a', region: 'us-dallas' },
  { provider: 'provider-c', region: 'eu-stockholm', cloudId: 'cloud-stockholm-2' },
  { provider: 'provider-d', region: 'us-phoenix' },
  { provider: 'provider-d', region: 'ap-tokyo' },
  { provider: 'provider-e', region: 'eu-frankfurt' },
  { provider: 'provider-f', region: 'us-newark' },
];
const MAX_LIVE = 5;
const MAX_VOLUMES = 3;
const BOOT_S = 3;
/** What a lifecycle request may be answered with when it is not refused for what was asked. */
const LIFECYCLE = [200, 400, 409, 502, 503, 504];

/** Users who act at random. Each accepted request is reported to the witness. */
export class Population {
  readonly #world: SevenProviders;
  readonly #witness: Witness;
  readonly #dice: Dice;
  readonly #offers: ListedOffer[];
  readonly #publicKey = newPublicKey('month');

  constructor(world: SevenProviders, witness: Witness, dice: Dice) {
    this.#world = world;
    this.#witness = witness;
    this.#dice = dice;
    this.#offers = [...world.providers.keys()]
      .flatMap(offersOf)
      // The dear ones would have spent all in a day.
      .filter(({ price }) => price < 7_000_000n);
  }

  /** A user does something. */
  async act(user: MarketUser): Promise<void> {
    const live = this.#witness.live(user.teamId);
    const some = this.#dice.pick(live);
    const deeds: (() => Promise<void>)[] = [
      ...(live.length < MAX_LIVE ? [() => this.#deploy(user), () => this.#deploy(user)] : []),
      ...(some === undefined
        ? []
        : [
            () => this.#change(user, some, 'pause'),
            () => this.#change(user, some, 'pause'),
            () => this.#change(user, some, 'resume'),
            () => this.#change(user, some, 'resume'),
            () => this.#change(user, some, 'restart'),
            () => this.terminate(user, some),
          ]),
      () => this.#syncVolumes(user),
    ];
    await this.#dice.pick(deeds)?.();
  }

  async #deploy(user: MarketUser): Promise<void> {
    const offer = this.#dice.pick(this.#offers);
    const region = this.#dice.pick(offer?.regions ?? []);
    if (offer === undefined || region === undefined) return;
    const reply = await this.#world.ask('POST', '/api/deployments', {
      key: user.key,
      body: {
        provider: offer.provider,
        offerId: offer.offerId,
        gpuCount: offer.gpuCount,
        region,
        operatingSystem: offer.image,
        ssh_public_key: this.#publicKey,
        teamId: user.teamId,
      },
    });
    this.#expect(reply, [201, 400], 'deploy');
    if (reply.status !== 201) return;
    await this.#witness.read(user, reply.body.id);
    // A machine boots faster than the clock goes on.
    for (let second = 0; second < BOOT_S; second++) await this.#world.pass(1_000);
  }

  async #change(
    user: MarketUser,
    { id, shown }: Testimony,
    what: 'pause' | 'resume' | 'restart',
  ): Promise<void> {
    const wanted = what === 'resume' ? 'stopped' : 'running';
    if (shown.status !== wanted) return;
    const reply = await this.#world.ask('POST', `/api/deployments/${id}/${what}`, { key: user.key });
    this.#expect(reply, LIFECYCLE, what);
    await this.#witness.read(user, id);
  }

  /** M: Deployments, rule 4: what ran too short goes on. */
  async terminate(user: MarketUser, known: Testimony): Promise<void> {
    const { id, shown } = known;
    const askedAt = this.#world.clock.now();
    const reply = await this.#world.ask('DELETE', `/api/deployments/${id}`, { key: user.key });
    this.#expect(reply, [200, 400], 'terminate');
    const mayEnd = shown.status === 'running' || shown.status === 'stopped';
    const now = await this.#witness.read(user, id);
    if (reply.status === 200 && now.stoppedAt !== new Date(askedAt).toISOString())
      this.#witness.contradict(
        known,
        `a terminate was accepted at ${askedAt}; stoppedAt is ${now.stoppedAt}`,
      );
    if (reply.status === 200 && !mayEnd)
      this.#witness.contradict(known, `a ${shown.status} one was terminated`);
  }

  async #syncVolumes(user: MarketUser): Promise<void> {
    const own = [...this.#witness.volumes.values()].filter(
      ({ team, provider, chapters }) =>
        team === user.teamId && chapters.at(-1)?.state !== 'over' && this.#isUp(provider),
    );
    const some = this.#dice.pick(own);
    if (some === undefined || (own.length < MAX_VOLUMES && this.#dice.chance(0.4)))
      return this.#buyVolume(user);
    const deed = this.#dice.pick([
      () => this.#resize(user, some),
      () => this.#attach(user, some),
      () => this.#detach(user, some),
      () => this.removeVolume(user, some),
    ]);
    await deed?.();
  }

  async #buyVolume(user: MarketUser): Promise<void> {
    const here = VOLUME_PLACES.filter(({ provider }) => this.#isUp(provider));
    const place = this.#dice.pick(here);
    if (place === undefined) return;
    const sizeInGb = this.#dice.between(50, 4000);
    const lockedPercentage = this.#bestOf(user);
    const reply = await this.#world.ask('POST', '/api/volumes', {
      key: user.key,
      body: { name: `data-${this.#witness.volumes.size}`, sizeInGb, ...place, teamId: user.teamId },
    });
    this.#expect(reply, [201, 400, 502], 'volume');
    if (reply.status !== 201) return;
    const { id, volumeId, status } = reply.body;
    const { provider, region, cloudId } = place;
    const microUsdPerHour = volumePrice(provider, region, sizeInGb, cloudId);
    const at = this.#world.clock.now();
    if (status !== 'available') throw new Error(`the volume ${volumeId} at ${provider} is ${status}`);
    this.#witness.volumes.set(volumeId, {
      volumeId,
      id,
      team: user.teamId,
      provider,
      region,
      sizeGb: sizeInGb,
      chapters: [{ at, state: 'stored', microUsdPerHour, lockedPercentage }],
    });
  }

  async #resize(user: MarketUser, volume: VolumeTestimony): Promise<void> {
    const sizeInGb = volume.sizeGb + this.#dice.between(1, 500);
    const reply = await this.#world.ask('PATCH', `/api/volumes/${volume.volumeId}`, {
      key: user.key,
      body: { sizeInGb },
    });
    this.#expect(reply, [200, 400, 409, 502], 'resize');
    if (reply.status !== 200) return;
    const at = Date.parse(reply.body.lastPriceUpdate);
    volume.sizeGb = sizeInGb;
    volume.chapters.push({
      at,
      state: 'stored',
      lockedPercentage: this.#bestOf(user, at),
      microUsdPerHour: volumePrice(volume.provider, volume.region, sizeInGb),
    });
  }

  async #attach(user: MarketUser, volume: VolumeTestimony): Promise<void> {
    const target = this.#dice.pick(
      this.#witness
        .live(user.teamId)
        .filter(({ shown }) => shown.providerId === volume.provider && shown.region === volume.region),
    );
    if (target === undefined) return;
    const reply = await this.#world.ask('POST', `/api/volumes/${volume.volumeId}/attach`, {
      key: user.key,
      body: { deploymentId: target.id },
    });
    this.#expect(reply, LIFECYCLE, 'attach');
    await this.#witness.read(user, target.id);
  }

  async #detach(user: MarketUser, { volumeId }: VolumeTestimony): Promise<void> {
    const { body } = await this.#world.ask('GET', `/api/volumes/${volumeId}`, { key: user.key });
    const deploymentId = this.#dice.pick(body.attachedToDeploymentIds as string[]);
    if (deploymentId === undefined) return;
    const reply = await this.#world.ask('POST', `/api/volumes/${volumeId}/detach`, {
      key: user.key,
      body: { deploymentId },
    });
    this.#expect(reply, LIFECYCLE, 'detach');
  }

  async removeVolume(user: MarketUser, volume: VolumeTestimony): Promise<boolean> {
    const at = this.#world.clock.now();
    const reply = await this.#world.ask('DELETE', `/api/volumes/${volume.volumeId}`, { key: user.key });
    this.#expect(reply, [200, 400, 409, 502], 'remove');
    if (reply.status === 200) volume.chapters.push({ at, state: 'over', microUsdPerHour: 0n });
    return reply.status === 200;
  }

  #isUp(provider: string): boolean {
    return this.#world.providers.get(provider)?.mood === 'up';
  }

  #bestOf({ teamId }: MarketUser, at = this.#world.clock.now()): number {
    return bestPercentage(this.#witness.discounts.get(teamId) ?? [], at);
  }

  #expect({ status, body }: MarketReply, expected: readonly number[], what: string): void {
    this.#witness.count(`${what} ${status}`);
    if (!expected.includes(status)) throw new Error(`${what}: ${status} ${JSON.stringify(body)}`);
  }
}
