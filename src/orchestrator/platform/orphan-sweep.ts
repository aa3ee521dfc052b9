import { z } from 'zod';
import { audit } from '../../operators/audit.ts';
import type { Actor } from '../../operators/model.ts';
import { forEachInSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import { instanceNoteSchema } from '../instances/note.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import type { ObservedMachine, ObservedVolume, OwnerRef, Step } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import {
  type InstanceRecord,
  instanceLogNames,
  type VolumeRecord,
  volumeLogNames,
} from '../model/records.ts';
import { putInstanceWork, putVolumeWork } from '../model/rows.ts';
import { volumeNoteSchema } from '../volumes/note.ts';
import type { ReconcileContext } from './context.ts';
import { changedBefore } from './expected-machines.ts';
import { deletePruned, destroyPruned, wasPruned } from './pruned.ts';
import type { Listed as SharedListed } from './shared-listing.ts';
import { isNewlyVisible, markVolumeVisible } from './visibility.ts';
import { compareVolume, reconcileDrift, toStateKey } from './volume-drift.ts';

const AT_ONCE = 16;
/** For how long a volume that stays listed is not read again, in milliseconds. */
const OWNED_FOR_MS = 10 * 60_000;

/** What is said of a listing as a whole: what is on a silent host may be there still. */
type Listed = Pick<SharedListed<unknown>, 'begunAt' | 'hosts'>;

interface Orphan extends Pick<ObservedMachine, 'ref' | 'power'> {
  action: 'log' | 'stop' | 'reap';
}

interface Owned {
  readAt: number;
  /** See {@link toStateKey}. */
  stateKey: string;
}

/** Accepts every note with an id; the owner is checked by `readNote`. */
const anyNote = z.looseObject({ id: z.string() });

/**
 * Finds machines with our tag that no live row owns, in two phases: in one listing, and still in the next. If the row
 * has ended, the deletion is not finished and is repeated. A machine without any row is an orphan once it is older
 * than the grace period; the operator chooses what happens then, and the default only logs it.
 */
export class OrphanSweep {
  readonly #context: ReconcileContext;
  readonly #pace: Parameters<typeof forEachInSlices>[1];
  #listedBefore: ReadonlySet<OwnerRef> = new Set();
  /** Those of the sweep that runs. */
  #orphans: Orphan[] = [];
  #orphanVolumes: ObservedVolume[] = [];
  /** Orphans that a call is under way for. */
  readonly #underWay = new Set<OwnerRef>();
  readonly #foreign = new Set<OwnerRef>();
  /** The volumes that were listed last and are as their live row says, with when that was read. */
  #ownedVolumes = new Map<OwnerRef, Owned>();
  /** All that were listed last, as they were shown. */
  #volumesBefore: ReadonlyMap<OwnerRef, string> = new Map();

  constructor(context: ReconcileContext, isStopped: () => boolean) {
    this.#context = context;
    this.#pace = { atOnce: AT_ONCE, isStopped };
  }

  /** `unowned`: machines that no live row expects, of a listing that can be believed. */
  async sweep(unowned: readonly ObservedMachine[], { begunAt, hosts }: Listed): Promise<void> {
    const before = this.#listedBefore;
    this.#listedBefore = new Set(unowned.map(({ ref }) => ref));
    this.#orphans = [];
    let withoutRow = 0;
    const isOver = await forEachInSlices(unowned, this.#pace, async (machine) => {
      if (this.#isForeign(machine)) return;
      if (!(await this.#hadRow(machine, before.has(machine.ref), begunAt))) withoutRow++;
    });
    if (!isOver) return;
    this.#context.notFoundGuard.sweptWithoutRow('instance', withoutRow);
    const { alarms, platform, log } = this.#context;
    const kind = {
      kind: 'orphan_machine' as const,
      platform,
      text: 'a machine with our tag has no instance, or one that was lost: it may be costing money, and hold data',
      describe: ({ power }: Orphan) => `it is ${power}`,
      fields: ({ ref, power, action }: Orphan) => ({ ref, power, action }),
      log,
    };
    await raiseFolded(alarms, kind, this.#orphans, hosts.silent.size === 0);
    await forEachInSlices(this.#orphans, this.#pace, (orphan) => this.#act(orphan));
  }

  /**
   * Volumes hold data: one without a row is never touched, only logged. If the row is deleted, the deletion is
   * repeated, as with a machine. If a volume differs from its row in two listings, the two are reconciled.
   */
  async sweepVolumes(volumes: readonly ObservedVolume[], { begunAt, hosts }: Listed): Promise<void> {
    const before = this.#volumesBefore;
    this.#orphanVolumes = [];
    this.#volumesBefore = new Map(volumes.map((volume) => [volume.ref, toStateKey(volume)]));
    const owned = this.#ownedVolumes;
    this.#ownedVolumes = new Map();
    let withoutRow = 0;
    const isOver = await forEachInSlices(volumes, { ...this.#pace, atOnce: 1 }, async (volume) => {
      if (this.#isForeign(volume)) return;
      const known = await this.#checkVolume(volume, owned.get(volume.ref), before.get(volume.ref), begunAt);
      if (known === 'without-row') withoutRow++;
      else if (known !== null) this.#ownedVolumes.set(volume.ref, known);
    });
    if (!isOver) return;
    this.#context.notFoundGuard.sweptWithoutRow('volume', withoutRow);
    const { alarms, platform, log } = this.#context;
    const kind = {
      kind: 'orphan_volume' as const,
      platform,
      text: 'a volume with our tag has no row: it may be costing money, and it may hold data',
      describe: ({ createdAt }: ObservedVolume) => `made ${new Date(createdAt).toISOString()}`,
      fields: ({ ref }: ObservedVolume) => ({ ref }),
      log,
    };
    await raiseFolded(alarms, kind, this.#orphanVolumes, hosts.silent.size === 0);
  }

  /** Null: it has no live row, or differs from it; it is handled if the listing before showed the same. */
  async #checkVolume(
    volume: ObservedVolume,
    known: Owned | undefined,
    stateKeyBefore: string | undefined,
    begunAt: number,
  ): Promise<Owned | 'without-row' | null> {
    const { notFoundGuard, platform, clock, store } = this.#context;
    const now = clock.now();
    const stateKey = toStateKey(volume);
    if (known?.stateKey === stateKey && Math.abs(now - known.readAt) < OWNED_FOR_MS) return known;
    const row = await store.read.volumes.byOwnerRef(volume.ref);
    if (row !== null && row.platform !== platform) return null;
    if (row !== null && !hasEnded(row)) {
      if (isNewlyVisible(row, begunAt, this.#context)) await markVolumeVisible(this.#context, row);
      const found = await compareVolume(this.#context, row, volume);
      // In a restored database the row is more likely outdated.
      if (found === 'more' && stateKey === stateKeyBefore && !notFoundGuard.isRestored)
        await reconcileDrift(this.#context, row, volume);
      return found === 'as-recorded' ? { readAt: now, stateKey } : null;
    }
    const isListedAgain = stateKeyBefore !== undefined;
    if (row === null) return (await this.#deletePruned(volume, isListedAgain)) ? null : 'without-row';
    if (isListedAgain) await this.#deleteAgain(row, begunAt);
    return null;
  }

  /** Whether its tombstone was pruned: then it is deleted again. Otherwise its row was lost, and it may hold data. */
  async #deletePruned(volume: ObservedVolume, isListedAgain: boolean): Promise<boolean> {
    const { clock, options } = this.#context;
    const reading = readNote(volume, this.#context.installationId, volumeNoteSchema);
    const isPruned = reading.owner === 'ours' && (await wasPruned(this.#context, 'volume', reading.value));
    if (isPruned && isListedAgain) await deletePruned(this.#context, volume.ref, reading.value);
    if (!isPruned && isListedAgain && clock.now() - volume.createdAt >= options.orphanGraceMs)
      this.#orphanVolumes.push(volume);
    return isPruned;
  }

  /** A late create made it, or the volume only seemed gone. */
  async #deleteAgain(volume: VolumeRecord, begunAt: number): Promise<void> {
    const { store, clock, log } = this.#context;
    const { id, ownerRef: ref } = volume;
    await store.transact(async (tx) => {
      const row = await tx.volumes.byId(id);
      if (row === null || row.destroyOrder === null || !hasEnded(row) || (await tx.work.of(id)) !== null)
        return;
      if (row.deletedAt !== null && !changedBefore(row.deletedAt, begunAt, this.#context)) return;
      await putVolumeWork(tx, id, 'destroy', clock.now());
      log.error(
        { ...volumeLogNames(volume), ref },
        'a volume that was deleted is there: it is deleted again',
      );
    });
  }

  /** Another Berth on the same platform made it, or this one on another platform that shows the same machines. */
  #isForeign(resource: ObservedMachine | ObservedVolume): boolean {
    const { log, installationId, otherPlatforms } = this.#context;
    if (this.#foreign.has(resource.ref)) return true;
    if (readNote(resource, installationId, anyNote, otherPlatforms).owner !== 'foreign') return false;
    this.#foreign.add(resource.ref);
    log.debug({ ref: resource.ref }, 'another installation made this one');
    return true;
  }

  /** Handles a machine that was listed twice. False: it has no row, and had none that was pruned. */
  async #hadRow(machine: ObservedMachine, isListedAgain: boolean, begunAt: number): Promise<boolean> {
    const { store, platform } = this.#context;
    const row = await store.read.instances.byOwnerRef(machine.ref);
    if (row === null) return this.#hadPrunedRow(machine, isListedAgain);
    if (!isListedAgain || row.platform !== platform) return true;
    if (row.destroyOrder !== null) await this.#destroyAgain(row, machine, begunAt);
    else if (row.status !== 'DESTROYING') this.#foundOrphan(machine, 'log');
    return true;
  }

  async #hadPrunedRow(machine: ObservedMachine, isListedAgain: boolean): Promise<boolean> {
    const { notFoundGuard, clock, options, installationId } = this.#context;
    const reading = readNote(machine, installationId, instanceNoteSchema);
    if (reading.owner === 'ours' && (await wasPruned(this.#context, 'instance', reading.value))) {
      if (isListedAgain) await destroyPruned(this.#context, machine.ref, reading.value);
      return true;
    }
    // In a restored database the row of such a machine was more likely lost.
    if (
      isListedAgain &&
      !notFoundGuard.isRestored &&
      clock.now() - machine.createdAt >= options.orphanGraceMs
    )
      this.#foundOrphan(machine, this.#actionFor(machine));
    return false;
  }

  /** A late create made the machine after its absence was proved: the row stays, the machine is destroyed. */
  async #destroyAgain(
    { id }: InstanceRecord,
    { ref, power }: ObservedMachine,
    begunAt: number,
  ): Promise<void> {
    const { store, clock, log } = this.#context;
    await store.transact(async (tx) => {
      const row = await tx.instances.byId(id);
      const hasEnded = row?.status === 'DESTROYED' || row?.status === 'ERROR' || row?.status === 'OFFLINE';
      const isOld = row !== null && changedBefore(row.updatedAt, begunAt, this.#context);
      if (!hasEnded || !isOld || row.destroyOrder === null || (await tx.work.of(id)) !== null) return;
      await putInstanceWork(tx, id, 'destroy', clock.now());
      log.error(
        { ...instanceLogNames(row), ref, power, status: row.status },
        'the machine of an instance that has ended is there: it is destroyed again',
      );
    });
  }

  #foundOrphan({ ref, power }: ObservedMachine, wanted: Orphan['action']): void {
    this.#orphans.push({ ref, power, action: wanted === 'stop' && power !== 'running' ? 'log' : wanted });
  }

  /** The operator's policy is the request: it is recorded before the call. */
  async #act({ ref, action }: Orphan): Promise<void> {
    const { driver, log, clock, store, alarms, options, platform } = this.#context;
    if (action === 'log' || this.#underWay.has(ref)) return;
    const now = clock.now();
    const server: Actor = { name: alarms.server, source: 'server', address: null };
    const order = recordedOrder({ reason: 'policy', by: alarms.server, at: now });
    await store.transact((tx) =>
      audit(tx, clock, server, { action: `machine.${action}`, subject: ref, detail: { platform } }),
    );
    const controller = new AbortController();
    const limits = { deadline: now + options.callTimeoutMs, fence: now, signal: controller.signal };
    const timer = clock.setTimer(options.callTimeoutMs, () => controller.abort());
    this.#underWay.add(ref);
    const acting: Promise<Step<unknown>> =
      action === 'stop' ? driver.stop(ref, null, limits) : driver.destroy(ref, null, order, limits);
    // A call that does not end delays no sweep, and gets no second one beside it.
    void acting
      .then(({ outcome }) => log.warn({ ref, action, outcome }, 'acted on an orphan'))
      .catch((error) => log.warn({ ref, action, err: error }, 'acted on an orphan'))
      .finally(() => {
        timer.cancel();
        this.#underWay.delete(ref);
      });
  }

  /**
   * Only logs two kinds: a machine without our note, if the platform keeps notes, may be another installation's; and
   * one with a complete note is a machine whose row was lost, since it was not pruned.
   */
  #actionFor(machine: ObservedMachine): 'log' | 'stop' | 'reap' {
    const { notFoundGuard, driver, options, installationId } = this.#context;
    const isLostRow =
      notFoundGuard.isUnadopted(machine.ref) ||
      readNote(machine, installationId, instanceNoteSchema).owner === 'ours';
    if (isLostRow) return 'log';
    const isOurs = !driver.manifest.keepsNotes || readNote(machine, installationId, anyNote).owner === 'ours';
    return isOurs ? options.orphans : 'log';
  }
}

/** Whether the platform must not have it any more: it is deleted, or its create was refused. */
function hasEnded({ deletedAt, status }: VolumeRecord): boolean {
  return deletedAt !== null || status === 'ERROR';
}
