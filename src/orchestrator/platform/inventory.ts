import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import { activeCordons, cordonedHosts, outOfPlacement } from '../capacity/cordons.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { HeldClaim } from '../model/claims.ts';
import type { CordonRecord } from '../model/cordon.ts';
import type { FreeUnits, Inventory, ObservedHost } from '../model/inventory.ts';
import type { ObservedMachine, OwnerRef, PlatformDriver } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { Telemetry } from '../model/telemetry.ts';
import type { UsageReading } from '../volumes/storage.ts';
import { askInventory, askUsage } from './call-platform.ts';

interface Deps {
  /** The name of the platform. */
  platform: string;
  driver: Pick<PlatformDriver, 'inventory'>;
  store: Pick<Store, 'read'>;
  catalog: Catalog;
  clock: Clock;
  log: Log;
  alarms: Pick<Alarms, 'raise' | 'end'>;
  options: { callTimeoutMs: number };
  telemetry?: Telemetry;
}

/**
 * How long the last count is valid while the platform does not count, in milliseconds. After that none of its units are
 * sold.
 */
const COUNT_HOLDS_MS = 10 * 60_000;

/**
 * Free capacity as the platform itself counts it, in addition to the units of the catalog: without hosts that are down
 * or cordoned and broken devices. Refreshed with each listing. If the driver does not count, it sets no limit.
 */
export class PlatformInventory {
  /** Free units by offer in the last count. */
  freeUnits: ReadonlyMap<string, number> = new Map();
  /** The hosts in the last count. */
  hosts: readonly ObservedHost[] = [];
  /** Why fewer units were free in the last count than the hosts have room for. */
  limitedBy: readonly string[] = [];
  readonly #deps: Deps;
  /** Units that claims may take, including the taken ones. */
  #capacity: ReadonlyMap<string, number> = new Map();
  #obstacles: ReadonlyMap<string, readonly string[]> = new Map();
  #countedAt: number | undefined;
  #isUnknown = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Units that claims may take for an offer in a region. Undefined for no limit. 0 if the last count began before
   * `changedAt`.
   */
  capacity(offerId: string, region: string, changedAt = Number.NEGATIVE_INFINITY): number | undefined {
    if (this.#deps.driver.inventory === undefined) return undefined;
    const isCurrent = this.#holds && (this.#countedAt ?? changedAt) >= changedAt;
    return isCurrent ? this.#capacity.get(`${offerId} ${region}`) : 0;
  }

  /**
   * Why the last count has no free unit of an offer in a region: on each host, then limits of the whole platform. Empty
   * if the driver does not say.
   */
  obstacles(offerId: string, region: string): readonly string[] {
    return this.#obstacles.get(`${offerId} ${region}`) ?? [];
  }

  /** The age of the last count. 0 if the driver does not count. Infinite if it has not counted yet. */
  get ageMs(): number {
    const { driver, clock } = this.#deps;
    if (driver.inventory === undefined) return 0;
    return this.#countedAt === undefined ? Number.POSITIVE_INFINITY : clock.now() - this.#countedAt;
  }

  /** Whether the count is too old, or hosts did not answer it. More may be free than it shows. */
  get isPartial(): boolean {
    return !this.#holds || this.hosts.some(({ state }) => state === 'silent');
  }

  /** Whether the count is still valid. The absolute value covers a clock that was set back. */
  get #holds(): boolean {
    return Math.abs(this.ageMs) <= COUNT_HOLDS_MS;
  }

  /**
   * Asks the platform for its count. `listed`: the machines of its last listing. `unseen`: machines on silent hosts; no
   * count treats their capacity as free. Never rejects.
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
      const open = cordonedHosts(await activeCordons(store.read, askedAt), platform);
      const out = (await outOfPlacement(store.read, platform)).filter(({ kind }) => kind === 'host');
      const avoidHosts = [...new Set([...open, ...out.map(({ name }) => name)])];
      const counted = await askInventory(this.#deps, () => ask.call(driver, avoidHosts));
      if (counted.answer === 'unknown') return this.#noteUnknown(counted.reason);
      const isTrialDue = avoidHosts.length > open.length;
      const withTrials = isTrialDue ? await askInventory(this.#deps, () => ask.call(driver, open)) : counted;
      const inventory = withRefusals(withTrial(counted, withTrials), out);
      const after = await store.read.claims.held();
      const isHere = ({ platform }: HeldClaim): boolean => platform === this.#deps.platform;
      const taken =
        inventory.counted === undefined
          ? stillTaken(after.filter(isHere), listed, unseen, this.#deps.catalog)
          : takenInCount([...before, ...after].filter(isHere), [...inventory.counted, ...unseen]);
      this.#keep(inventory, [...taken, ...after.filter((claim) => !isHere(claim) && stays(claim))]);
      this.hosts = inventory.hosts ?? [];
      this.limitedBy = inventory.limitedBy ?? [];
      this.#countedAt = askedAt;
      alarms.end({ kind: 'inventory_unknown', subject: platform });
      if (this.#isUnknown) log.info({}, 'the platform counts its free units again');
      this.#isUnknown = false;
    } catch (error) {
      log.error({ err: error }, 'the free units of the platform could not be compared with the claims');
    }
  }

  /**
   * The new capacity is the free units plus the claims whose machine is in the count. A claim whose machine is not made
   * yet will take a free unit. A claim on another platform, where the offer was sold before, takes no unit here.
   */
  #keep(
    { free, limitedBy = [] }: { free: readonly FreeUnits[]; limitedBy?: readonly string[] },
    claims: readonly HeldClaim[],
  ): void {
    const { catalog, platform } = this.#deps;
    const taken = new Map<string, number>();
    for (const { offerId, region } of claims) add(taken, `${offerId} ${region}`, 1);
    const capacity = new Map<string, number>();
    const why = new Map<string, readonly string[]>();
    const freeByOffer = new Map<string, number>();
    for (const { offerId, datacenter, units, obstacles = [] } of free) {
      if (catalog.offers.get(offerId)?.platform === platform) add(freeByOffer, offerId, units);
      for (const [token, region] of catalog.regions)
        if (region.datacenter === datacenter) {
          capacity.set(`${offerId} ${token}`, units + (taken.get(`${offerId} ${token}`) ?? 0));
          why.set(`${offerId} ${token}`, units > 0 ? [] : [...obstacles, ...limitedBy]);
        }
    }
    this.#capacity = capacity;
    this.#obstacles = why;
    this.freeUnits = freeByOffer;
  }

  #noteUnknown(reason: string): void {
    const { alarms, platform, log } = this.#deps;
    const text =
      'the platform does not count its free units: the last count stays in use for a while, then selling stops. Check the platform with `berth doctor`';
    const fields = { reason, holdsMs: COUNT_HOLDS_MS };
    alarms.raise(
      { kind: 'inventory_unknown', subject: platform, platform, text, detail: reason, fields },
      log,
    );
    this.#isUnknown = true;
  }
}

type Counted = Extract<Inventory, { answer: 'counted' }>;

/** Adds one unit where a host has room on which a trial is due. `open`: the count with these hosts. */
function withTrial(counted: Counted, open: Inventory): Counted {
  if (open.answer === 'unknown' || open === counted) return counted;
  const units = new Map(open.free.map((one) => [`${one.offerId} ${one.datacenter}`, one.units]));
  const free = counted.free.map((one) =>
    (units.get(`${one.offerId} ${one.datacenter}`) ?? 0) > one.units ? { ...one, units: one.units + 1 } : one,
  );
  return { ...counted, free };
}

/** Says why nothing is placed on the hosts that are out of placement. The driver only knows that it must avoid them. */
function withRefusals(counted: Counted, out: readonly CordonRecord[]): Counted {
  if (out.length === 0) return counted;
  const reasons = new Map(out.map(({ name, reason }) => [name, reason ?? '']));
  const named = new Set(counted.free.flatMap(({ obstacles = [] }) => obstacles.map(hostOf)));
  const unnamed = [...reasons].flatMap(([host, reason]) => (named.has(host) ? [] : [`${host}: ${reason}`]));
  const explain = (text: string): string => {
    const reason = reasons.get(hostOf(text));
    return reason === undefined ? text : `${hostOf(text)}: ${reason}`;
  };
  return {
    ...counted,
    free: counted.free.map((one) => ({
      ...one,
      obstacles: [...(one.obstacles ?? []).map(explain), ...unnamed],
    })),
    ...(counted.hosts !== undefined && {
      hosts: counted.hosts.map((one): ObservedHost => {
        const detail = reasons.get(one.host);
        return detail === undefined || one.state === 'silent' ? one : { ...one, state: 'closed', detail };
      }),
    }),
  };
}

/** The host in an obstacle such as `kvm-1: it has 11 GB of free disk`. */
const hostOf = (obstacle: string): string => obstacle.split(': ', 1)[0] ?? '';

/** A unit that was claimed or released during the count is in one of the two lists of claims. */
function takenInCount(claims: readonly HeldClaim[], counted: readonly OwnerRef[]): HeldClaim[] {
  const held = new Map(claims.map((claim) => [claim.ownerRef, claim]));
  return [...new Set(counted)].flatMap((ref) => held.get(ref) ?? []);
}

/**
 * The claims whose machine was listed and surely still takes its unit. A stopped machine may have freed its unit,
 * unless its offer holds it. A machine that is being removed may already be counted as free.
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

/** Whether the claim is not about to be released. */
function stays({ status, isKept }: HeldClaim): boolean {
  return isKept || status === 'PROVISIONING' || status === 'ONLINE' || status === 'STOPPED';
}

function add(sums: Map<string, number>, key: string, units: number): void {
  sums.set(key, (sums.get(key) ?? 0) + units);
}

interface UsageDeps {
  driver: Pick<PlatformDriver, 'volumes'>;
  clock: Clock;
  options: { callTimeoutMs: number };
  telemetry?: Telemetry;
}

/** The platform is asked at most this often, however many clients ask. */
const READ_EVERY_MS = 60_000;

/** How much of its volumes' space a platform uses. It asks the driver when a client asks, at most once a minute. */
export class PlatformVolumeUsage {
  readonly #deps: UsageDeps;
  #last: UsageReading | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  /** The last reading; undefined if there is none. A platform that does not answer leaves the one before. Never rejects. */
  async read(): Promise<UsageReading | undefined> {
    const { driver, clock } = this.#deps;
    const { volumes } = driver;
    const usage = volumes?.usage;
    if (usage === undefined) return undefined;
    if (Math.abs(clock.now() - this.#askedAt) >= READ_EVERY_MS)
      this.#reading ??= this.#refresh(() => usage.call(volumes)).finally(() => {
        this.#reading = undefined;
      });
    await this.#reading;
    return this.#last;
  }

  async #refresh(ask: Parameters<typeof askUsage>[1]): Promise<void> {
    const measuredAt = this.#deps.clock.now();
    const listing = await askUsage(this.#deps, ask);
    this.#askedAt = measuredAt;
    if (listing.answer === 'unknown') return;
    const usedBytes = new Map<OwnerRef, number>(listing.items.map((item) => [item.ref, item.usedBytes]));
    this.#last = { measuredAt, usedBytes };
  }
}
