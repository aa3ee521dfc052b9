import type { InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Violation } from '../../kernel/violation.ts';
import type { Proof } from '../platform/ssh.ts';
import type { OrchestratorWorld } from '../replicas/replica.ts';
import type { Sold, StoreObserver } from '../replicas/store.ts';
import type { Reply, ReplyInspector } from '../workload/clients.ts';
import type { Key, Tenant } from '../workload/tenant.ts';
import { History } from './history.ts';
import { inspectReply } from './inspect-reply.ts';
import { endHasAnOrder, volumeEndHasAnOrder } from './orders.ts';
import { type Holder, leaseIsHeld } from './platform.ts';
import { Validators } from './replies.ts';
import {
  errorSaysWhy,
  followsTheTable,
  nothingIsForgotten,
  onlineIsEarned,
  timeGoesOn,
  type Written,
} from './rows.ts';
import { onlyATombstoneIsWrittenAgain, onlyTombstonesArePruned } from './tombstones.ts';
import { noVolumeIsForgotten, type VolumeWritten, volumeFollowsTheTable } from './volume-rows.ts';

/** Observes the rows and the replies of a run. `assertHeld` throws the first violation that it found. */
export abstract class RowInspector<World extends OrchestratorWorld> implements StoreObserver, ReplyInspector {
  readonly history = new History();
  protected readonly world: World;
  #validators = new Validators();
  readonly #holders = new Map<string, Holder>();
  /** The ids whose tombstones were deleted. */
  readonly #pruned = new Set<string>();
  /** The ids whose rows were lost, as the database went back to a time before them. */
  readonly #forgotten = new Set<string>();
  /** The ids that had an order to destroy them, which the database may have forgotten. */
  readonly #ordered = new Set<string>();
  #broken: Violation | undefined;
  /** Whether claims were written since the capacity was checked last. */
  areClaimsWritten = true;

  constructor(world: World) {
    this.world = world;
  }

  /** Checks one write of an instance's row. */
  protected abstract checkWritten(written: Written): void;

  /** Checks one write of a volume's row. */
  protected abstract checkVolumeWritten(written: VolumeWritten): void;

  /** What holds for each write of an instance's row, whatever the platform is. */
  protected checkRow(written: Written, proof: Proof | undefined): void {
    const { database, scheduler, scenario } = this.world;
    followsTheTable(written);
    endHasAnOrder(written.after);
    errorSaysWhy(written);
    timeGoesOn(written);
    // A server that was paused between the proof and its write, or waited for the transaction of one that was, cannot know
    // how old the proof is.
    const pausedUntil = Math.max(database.writer?.pausedUntil ?? 0, database.heldUpUntil);
    const now = scheduler.now - Math.max(0, pausedUntil - (proof?.at ?? 0));
    onlineIsEarned(written, proof, { now, withinMs: 2_000 * scenario.leaseS });
  }

  /** {@link checkRow}, of a volume. */
  protected checkVolumeRow(written: VolumeWritten): void {
    volumeFollowsTheTable(written);
    volumeEndHasAnOrder(written.after);
  }

  /** @throws {Violation} the first one that was found */
  assertHeld(): void {
    if (this.#broken !== undefined) throw this.#broken;
  }

  /** Runs a check in the middle of production code, which must not see what the check throws. */
  check(body: () => void): void {
    try {
      body();
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      if (this.#broken === undefined) this.world.journal.note('!', error.message);
      this.#broken ??= error;
    }
  }

  replied(reply: Reply, tenant: Tenant, key: Key): void {
    const { catalog } = this.world;
    this.check(() =>
      inspectReply(this.history, { reply, tenant, key, validators: this.#validators, catalog }),
    );
  }

  instancesWritten(records: readonly InstanceRecord[]): void {
    for (const record of records) {
      const before = this.history.add(this.world.scheduler.now, record);
      if (record.destroyOrder !== null) this.#ordered.add(record.id);
      if (this.#forgotten.delete(record.id)) {
        this.world.journal.note('row', `${record.id} has a row again: ${record.status}`);
        continue;
      }
      if (this.#pruned.delete(record.id)) {
        this.check(() => onlyATombstoneIsWrittenAgain(record.id, record.status === 'DESTROYED'));
        continue;
      }
      if (before?.status !== record.status)
        this.world.journal.note(
          'row',
          `${record.id} ${before?.status ?? 'new'} → ${record.status} ${record.error ?? ''}`,
        );
      this.check(() => this.checkWritten({ before, after: record }));
    }
  }

  /** Checks after a power cut that what was committed is there. */
  async recovered(): Promise<void> {
    const { read } = this.world.database.store;
    for (const record of this.history.instances()) {
      const found = await read.instances.byId(record.id);
      if (!this.#pruned.has(record.id)) this.check(() => nothingIsForgotten(record, found));
    }
    for (const volume of this.history.volumes()) {
      const found = await read.volumes.byId(volume.id);
      if (!this.#pruned.has(volume.id)) this.check(() => noVolumeIsForgotten(volume, found));
    }
  }

  /** The database has gone back to an earlier state: from now on this is what was committed last. */
  async wentBack(): Promise<void> {
    const { database, scheduler } = this.world;
    const { read } = database.store;
    this.#validators = new Validators();
    this.#holders.clear();
    for (const record of this.history.instances()) {
      const found = await read.instances.byId(record.id);
      if (found === null) this.#forget(record.id);
      else if (found.version !== record.version) this.history.add(scheduler.now, found);
      if (found !== null) this.#pruned.delete(record.id);
    }
    for (const volume of this.history.volumes()) {
      const found = await read.volumes.byId(volume.id);
      if (found === null) this.#forget(volume.id);
      else this.history.addVolume(scheduler.now, found);
      if (found !== null) this.#pruned.delete(volume.id);
    }
  }

  /** Whether the row was lost, and is not there again. */
  isForgotten(id: string): boolean {
    return this.#forgotten.has(id);
  }

  /** Whether its end was ever asked for. */
  wasOrdered(id: string): boolean {
    return this.#ordered.has(id);
  }

  #forget(id: string): void {
    if (this.#pruned.has(id)) return;
    this.world.journal.note('row', `${id} is forgotten`);
    this.history.forget(id);
    this.#forgotten.add(id);
  }

  volumeWritten(volume: VolumeRecord): void {
    const before = this.history.addVolume(this.world.scheduler.now, volume);
    if (volume.destroyOrder !== null) this.#ordered.add(volume.id);
    if (this.#forgotten.delete(volume.id)) {
      this.world.journal.note('row', `${volume.id} has a row again: ${volume.status}`);
      return;
    }
    if (this.#pruned.delete(volume.id)) {
      this.check(() => onlyATombstoneIsWrittenAgain(volume.id, volume.deletedAt !== null));
      return;
    }
    if (before?.status !== volume.status || before.deletedAt !== volume.deletedAt)
      this.world.journal.note('row', `${volume.id} → ${volume.deletedAt === null ? volume.status : 'gone'}`);
    this.check(() => this.checkVolumeWritten({ before, after: volume }));
  }

  pruned(ids: readonly string[]): void {
    const { scheduler, scenario, tally, journal } = this.world;
    for (const id of ids) {
      journal.note('row', `${id} is pruned`);
      this.#pruned.add(id);
      // Where clocks were changed nobody can tell how old it is.
      const leastAgeMs = tally.clockJumps === 0 ? 1_000 * scenario.tombstonesKeptS : 0;
      this.check(() => onlyTombstonesArePruned(id, this.history.end(id), scheduler.now, leastAgeMs));
    }
  }

  /** Whether its tombstone was deleted, and not written again. */
  isPruned(id: string): boolean {
    return this.#pruned.has(id);
  }

  claimed(process: ServerProcess, leases: readonly Lease[]): void {
    for (const lease of leases) {
      this.#holders.set(lease.resourceId, { process: process.name, token: lease.token });
      this.world.journal.note(process.name, `claims ${lease.kind} of ${lease.resourceId} #${lease.attempt}`);
    }
  }

  storeFailed(_process: ServerProcess): void {}

  sold(_process: ServerProcess, _sold: Sold): void {}

  claimsWritten(): void {
    this.areClaimsWritten = true;
  }

  checked(process: ServerProcess, lease: Lease, hasWritten: boolean): void {
    this.check(() => leaseIsHeld(lease, hasWritten, this.#holders.get(lease.resourceId), process.name));
  }
}
