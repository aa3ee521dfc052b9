import type { Timer } from '../../ports/clock.ts';
import { forEachInSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import { eachLiveInstance } from '../instances/list.ts';
import type { Listing, ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import type { ResourceKind } from '../model/work.ts';
import { observe } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { FirstListings } from '../platform/drift-detector.ts';
import type { NotFoundGuard, UnadoptedResource } from '../platform/not-found-guard.ts';
import type { SharedListing, Listed as TrustedListing } from '../platform/shared-listing.ts';
import { type Adopted, adoptMachine } from './adopt-machine.ts';
import { adoptVolume, reconcileVolume } from './adopt-volume.ts';
import { endRestore, restoredFrom } from './restore-marks.ts';
import { reconcileMachines } from './restored-rows.ts';

/** Resources that are adopted side by side: each may take an SSH proof. */
const ADOPTED_AT_ONCE = 16;
/** How many ids a line of the log names. */
const SOME = 10;

interface Listed<T> {
  items: readonly T[];
  /** Milliseconds since the epoch. */
  begunAt: number;
  /** Whether what it lacks is missing. */
  isTrusted: boolean;
}

interface RowLost extends UnadoptedResource {
  problem: string;
}

const ROW_LOST =
  'the platform has a resource with our tag that has no row, and its row cannot be restored: its id answers 503 until it can, or until the resource is removed there';

/**
 * One for each platform. Compares the platform's first listing with the database before any id is answered 404, and restores rows that were
 * lost with the database. After a restore from a backup, work that the backup shows as running has ended since: the
 * work of each row waits until the row is reconciled with its machine.
 */
export class Recovery {
  readonly #context: ReconcileContext;
  readonly #notFoundGuard: NotFoundGuard;
  readonly #begin: () => void;
  /** Owner refs that have a row, or had one: only a tombstone is ever deleted. */
  readonly #rows = new Set<OwnerRef>();
  /** Those of the last round that have no row. */
  readonly #rowLost: Record<ResourceKind, readonly RowLost[]> = { instance: [], volume: [] };
  readonly #reconciledVolumes = new Set<OwnerRef>();
  #isRestored = false;
  /** What changed before is of the backup, in milliseconds since the epoch. */
  #beganAt = 0;
  #isHoldLogged = false;
  #timer: Timer | undefined;
  #round: Promise<void> = Promise.resolve();
  #isStopped = false;

  /** `begin` starts the durable work, once it is known what of it waits. */
  constructor(context: ReconcileContext, begin: () => void) {
    this.#context = context;
    this.#notFoundGuard = context.notFoundGuard;
    this.#begin = begin;
  }

  /** Compares the first listings with the database, and waits for that at most as long as one call may take. */
  async start(first: FirstListings): Promise<void> {
    const takenAt = await restoredFrom(this.#context);
    if (takenAt !== null) await this.#holdWork(takenAt, first);
    this.#begin();
    this.#repeat(first);
    await this.#roundWithin(this.#context.options.callTimeoutMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#round;
  }

  async #roundWithin(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#context.clock.setTimer(ms, resolve);
    await Promise.race([this.#round, promise]);
    timer.cancel();
  }

  async #holdWork(takenAt: number, { machines }: FirstListings): Promise<void> {
    const { store, platform, restoreHold, clock, log } = this.#context;
    this.#isRestored = true;
    this.#beganAt = machines?.begunAt ?? clock.now();
    this.#notFoundGuard.restored();
    const ids: string[] = [];
    for await (const row of eachLiveInstance(store.read.instances))
      if (row.platform === platform) ids.push(row.id);
    restoreHold.begin(ids);
    log.warn(
      { backupTakenAt: new Date(takenAt).toISOString() },
      'this database was restored from a backup: it is compared with the platform before anything else. ' +
        'API keys that were revoked since the backup are valid again: see `berth keys ls`, and end them with `berth keys revoke <id>`',
    );
  }

  #repeat(first?: FirstListings): void {
    const { clock, options, log } = this.#context;
    this.#round = this.#recover(first)
      .catch((error) => {
        log.error({ err: error }, 'the database could not be compared with the platform; it will be retried');
        return false;
      })
      .then((isOver) => {
        // Nobody asks for them again, and there is one for each machine.
        if (isOver) this.#rows.clear();
        else if (!this.#isStopped)
          this.#timer = clock.setTimer(options.watchIntervalMs, () => this.#repeat());
      });
  }

  /** One round; true: nothing is left to recover. */
  async #recover(first?: FirstListings): Promise<boolean> {
    const areMachinesRecovered = await this.#recoverMachines(first?.machines);
    const areVolumesRecovered =
      areMachinesRecovered !== undefined && (await this.#recoverVolumes(first?.volumes));
    this.#logHold();
    if (areMachinesRecovered !== true || areVolumesRecovered !== true || !this.#context.restoreHold.areOver)
      return false;
    if (this.#isRestored) await this.#endRecovery();
    return true;
  }

  /** Logs once when work waits after a round, and once when none does any more. */
  #logHold(): void {
    const { restoreHold, log } = this.#context;
    if (restoreHold.areOver && this.#isHoldLogged)
      log.info({}, 'every row of the backup is reconciled with the platform: all work goes on');
    if (!restoreHold.areOver && !this.#isHoldLogged) {
      const [...instances] = restoreHold.instances;
      const waiting = { count: instances.length, instances: instances.slice(0, SOME) };
      log.warn(
        { ...waiting, volumes: restoreHold.areVolumesHeld },
        'these are not reconciled with the platform since the restore yet: their work waits, all other work goes on',
      );
    }
    this.#isHoldLogged = !restoreHold.areOver;
  }

  /** Whether all of them are recovered; undefined: the platform did not list them. */
  async #recoverMachines(first?: FirstListings['machines']): Promise<boolean | undefined> {
    const { driver, machines, store } = this.#context;
    const listed = await this.#list(machines, () => driver.list(), first);
    if (listed === undefined) return undefined;
    const byRef = new Map(listed.items.map((machine) => [machine.ref, machine]));
    for await (const { ownerRef } of eachLiveInstance(store.read.instances)) this.#rows.add(ownerRef);
    const unadopted = await this.#adopt<ObservedMachine>(
      listed.items,
      (ref) => store.read.instances.byOwnerRef(ref),
      (machine) => adoptMachine(this.#context, machine),
    );
    if (unadopted === undefined) return undefined;
    const areRecovered = await this.#report('instance', listed.isTrusted, unadopted);
    const shown = { machines: byRef, isTrusted: listed.isTrusted };
    await reconcileMachines(this.#context, shown, this.#beganAt, () => this.#isStopped);
    return areRecovered;
  }

  async #recoverVolumes(first?: FirstListings['volumes']): Promise<boolean | undefined> {
    const { driver, volumes, store } = this.#context;
    const volumeDriver = driver.volumes;
    if (volumes === undefined || volumeDriver === undefined) {
      this.#context.restoreHold.endVolumes();
      this.#notFoundGuard.sweptWithoutRow('volume', 0);
      return this.#report('volume', true, []);
    }
    const listed = await this.#list(volumes, () => volumeDriver.list(), first);
    if (listed === undefined) return undefined;
    const unadopted = await this.#adopt<ObservedVolume>(
      listed.items,
      (ref) => store.read.volumes.byOwnerRef(ref),
      (volume) => adoptVolume(this.#context, volume),
    );
    if (unadopted === undefined) return undefined;
    await this.#reconcileVolumes(listed);
    return this.#report('volume', listed.isTrusted, unadopted);
  }

  /** Reconciles each volume once: later changes are made by this process. */
  async #reconcileVolumes({ items, isTrusted }: Listed<ObservedVolume>): Promise<void> {
    const { restoreHold } = this.#context;
    if (!restoreHold.areVolumesHeld) return;
    const pace = { atOnce: 1, isStopped: () => this.#isStopped };
    const isOver = await forEachInSlices(items, pace, async (volume) => {
      if (this.#reconciledVolumes.has(volume.ref)) return;
      await reconcileVolume(this.#context, volume);
      this.#reconciledVolumes.add(volume.ref);
    });
    if (isOver && isTrusted) restoreHold.endVolumes();
  }

  async #report(kind: ResourceKind, isTrusted: boolean, unadopted: readonly RowLost[]): Promise<boolean> {
    if (isTrusted) this.#notFoundGuard.compared(kind, unadopted);
    else this.#notFoundGuard.listed(kind, unadopted);
    this.#rowLost[kind] = unadopted;
    const { alarms, platform, log } = this.#context;
    const describe = ({ problem }: RowLost) => problem;
    const fields = ({ ref, problem }: RowLost) => ({ ref, problem });
    const kindOf = { kind: 'row_lost' as const, platform, text: ROW_LOST, describe, fields, log };
    await raiseFolded(alarms, kindOf, [...this.#rowLost.instance, ...this.#rowLost.volume], true);
    return isTrusted && unadopted.length === 0;
  }

  /**
   * Listed resources exist even if the listing is not trusted to be complete; after a restore such a listing is used
   * too.
   */
  async #list<T extends { ref: OwnerRef }>(
    listing: SharedListing<T>,
    list: () => Promise<Listing<T>>,
    first?: TrustedListing<T> | null,
  ): Promise<Listed<T> | undefined> {
    const listed = first === undefined ? await listing.observe() : first;
    if (listed !== null)
      return {
        items: [...listed.items.values()],
        begunAt: listed.begunAt,
        isTrusted: listed.hosts.silent.size === 0,
      };
    if (!this.#isRestored) return undefined;
    const begunAt = this.#context.clock.now();
    const answer = await observe(this.#context, list, 'list');
    return answer.answer === 'listed' ? { items: answer.items, begunAt, isTrusted: false } : undefined;
  }

  /**
   * Restores the rows of listed resources without one; returns those that still have none; undefined: it was stopped.
   */
  async #adopt<T extends { ref: OwnerRef }>(
    items: readonly T[],
    findRow: (ref: OwnerRef) => Promise<object | null>,
    adopt: (item: T) => Promise<Adopted>,
  ): Promise<RowLost[] | undefined> {
    const unknown = items.filter(({ ref }) => !this.#rows.has(ref));
    if (unknown.length > 0) this.#notFoundGuard.unadoptedSeen();
    const unadopted: RowLost[] = [];
    const pace = { atOnce: ADOPTED_AT_ONCE, isStopped: () => this.#isStopped };
    const isOver = await forEachInSlices(unknown, pace, async (item) => {
      const adopted = (await findRow(item.ref)) === null ? await adopt(item) : 'adopted';
      if (adopted === 'adopted') this.#rows.add(item.ref);
      else if (adopted !== 'foreign') unadopted.push({ ref: item.ref, ...adopted });
    });
    return isOver ? unadopted : undefined;
  }

  async #endRecovery(): Promise<void> {
    const { log } = this.#context;
    if (await endRestore(this.#context))
      log.info(
        {},
        'the restored database is reconciled with the platform: nothing is missing in it any more',
      );
    this.#notFoundGuard.recovered();
    this.#isRestored = false;
  }
}
