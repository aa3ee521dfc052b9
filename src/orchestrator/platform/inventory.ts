import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import { cordonedHosts, standingCordons } from '../capacity/cordons.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type {
  FreeUnits,
  ObservedHost,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
} from '../model/platform-driver.ts';
import type { HeldClaim, Store } from '../model/store.ts';
import type { Telemetry } from '../model/telemetry.ts';
import { askInventory } from './call-platform.ts';

interface Deps {
  /** Its name. */
  platform: string;
  driver: Pick<PlatformDriver, 'inventory'>;
  store: Pick<Store, 'read'>;
  catalog: Catalog;
  clock: Clock;
  log: Log;
  alarms: Alarms;
  options: { callTimeoutMs: number };
  telemetry?: Telemetry;
}

/** For so long the last count holds while the platform does not count. After that nothing of it is sold. */
const COUNT_HOLDS_MS = 10 * 60_000;

/**
 * What the platform itself has room for, beside the units of the catalog: hosts that are down or cordoned, devices that are
 * broken. Counted with each listing; where the driver does not count, nothing is limited by it.
 */
export class PlatformInventory {
  /** Free units by offer, as they were counted last. */
  freeUnits: ReadonlyMap<string, number> = new Map();
  /** The hosts as they were told with the last count. */
  hosts: readonly ObservedHost[] = [];
  readonly #deps: Deps;
  /** Units that claims may take, the taken ones included. */
  #capacity: ReadonlyMap<string, number> = new Map();
  #countedAt: number | undefined;
  #isUnknown = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Units that claims of a placement may take; undefined: any number. */
  capacity(offerId: string, region: string): number | undefined {
    if (this.#deps.driver.inventory === undefined) return undefined;
    return this.#holds ? this.#capacity.get(`${offerId} ${region}`) : 0;
  }

  /** How old the last count is: 0 where nothing is counted, infinite before the first. */
  get ageMs(): number {
    const { driver, clock } = this.#deps;
    if (driver.inventory === undefined) return 0;
    return this.#countedAt === undefined ? Number.POSITIVE_INFINITY : clock.now() - this.#countedAt;
  }

  /** Whether the count is too old to hold, or hosts did not answer it: there may be more room than it says. */
  get isPartial(): boolean {
    return !this.#holds || this.hosts.some(({ state }) => state === 'silent');
  }

  /** A clock that was set back makes no count younger. */
  get #holds(): boolean {
    return Math.abs(this.ageMs) <= COUNT_HOLDS_MS;
  }

  /**
   * Asks the platform. `listed`: the machines of its last listing; `unseen`: those on hosts that do not answer, whose
   * room no count takes for free. Never rejects.
   */
  async refresh(
    listed: ReadonlyMap<OwnerRef, ObservedMachine>,
    unseen: ReadonlySet<OwnerRef> = new Set(),
  ): Promise<void> {
    const { driver, store, clock, log, alarms, platform } = this.#deps;
    const { inventory: ask } = driver;
    if (ask === undefined) return;
    try {
      const before = await store.read.claims.held();
      const askedAt = clock.now();
      const cordons = await standingCordons(store.read, askedAt);
      const avoidHosts = cordonedHosts(cordons, platform);
      const inventory = await askInventory(this.#deps, () => ask.call(driver, avoidHosts));
      if (inventory.answer === 'unknown') return this.#noteUnknown(inventory.reason);
      const after = await store.read.claims.held();
      const isHere = ({ platform }: HeldClaim): boolean => platform === this.#deps.platform;
      const taken =
        inventory.counted === undefined
          ? stillTaken(after.filter(isHere), listed, unseen, this.#deps.catalog)
          : takenInCount([...before, ...after].filter(isHere), [...inventory.counted, ...unseen]);
      this.#keep(inventory.free, [...taken, ...after.filter((claim) => !isHere(claim) && stays(claim))]);
      this.hosts = inventory.hosts ?? [];
      this.#countedAt = askedAt;
      alarms.end({ kind: 'inventory_unknown', subject: platform });
      if (this.#isUnknown) log.info({}, 'the platform counts its free units again');
      this.#isUnknown = false;
    } catch (error) {
      log.error({ err: error }, 'the free units of the platform could not be held against the claims');
    }
  }

  /**
   * Claims whose machine is in the count, and those that are free, may be taken. A claim whose machine is not made yet will
   * take one of the free. One of another platform, where the offer was sold before, takes none here.
   */
  #keep(free: readonly FreeUnits[], claims: readonly HeldClaim[]): void {
    const { catalog, platform } = this.#deps;
    const taken = new Map<string, number>();
    for (const { offerId, region } of claims) add(taken, `${offerId} ${region}`, 1);
    const capacity = new Map<string, number>();
    const freeByOffer = new Map<string, number>();
    for (const { offerId, datacenter, units } of free) {
      if (catalog.offers.get(offerId)?.platform === platform) add(freeByOffer, offerId, units);
      for (const [token, region] of catalog.regions)
        if (region.datacenter === datacenter)
          capacity.set(`${offerId} ${token}`, units + (taken.get(`${offerId} ${token}`) ?? 0));
    }
    this.#capacity = capacity;
    this.freeUnits = freeByOffer;
  }

  #noteUnknown(reason: string): void {
    const { alarms, platform, log } = this.#deps;
    const text =
      'the platform does not count its free units: the last count holds for a while, then nothing more is sold';
    const fields = { reason, holdsMs: COUNT_HOLDS_MS };
    alarms.raise(
      { kind: 'inventory_unknown', subject: platform, platform, text, detail: reason, fields },
      log,
    );
    this.#isUnknown = true;
  }
}

/** A unit that was claimed or given back while the platform counted is in one of both. */
function takenInCount(claims: readonly HeldClaim[], counted: readonly OwnerRef[]): HeldClaim[] {
  const held = new Map(claims.map((claim) => [claim.ownerRef, claim]));
  return [...new Set(counted)].flatMap((ref) => held.get(ref) ?? []);
}

/**
 * The claims whose machine was listed and is surely there still. A stopped machine may have given its room back, unless its
 * offer holds it; one that is removed may be among the free already.
 */
function stillTaken(
  claims: readonly HeldClaim[],
  listed: ReadonlyMap<OwnerRef, ObservedMachine>,
  unseen: ReadonlySet<OwnerRef>,
  { offers }: Catalog,
): HeldClaim[] {
  return claims.filter((claim) => {
    if (!stays(claim)) return false;
    const power = listed.get(claim.ownerRef)?.power;
    if (power === undefined) return unseen.has(claim.ownerRef);
    if (power === 'stopped') return offers.get(claim.offerId)?.onStop === 'hold';
    return power !== 'destroying';
  });
}

/** Whether it is not about to be given back. */
function stays({ status, isKept }: HeldClaim): boolean {
  return isKept || status === 'PROVISIONING' || status === 'ONLINE' || status === 'STOPPED';
}

function add(sums: Map<string, number>, key: string, units: number): void {
  sums.set(key, (sums.get(key) ?? 0) + units);
}
