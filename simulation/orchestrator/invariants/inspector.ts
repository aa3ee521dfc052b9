import type { CordonRecord } from '../../../src/orchestrator/model/cordon.ts';
import type { Cause, VolumeRecord as PlatformVolume } from '../../../src/platform-model/records.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { CountObserver } from '../platform/driver.ts';
import type { Call } from '../platform/network.ts';
import type { Machine, PlatformObserver } from '../platform/platform.ts';
import type { AllMachines, AllVolumes, Site } from '../platform/sites.ts';
import type { SimulatedSsh } from '../platform/ssh.ts';
import type { Traits } from '../platform/traits.ts';
import type { OrchestratorWorld } from '../replicas/replica.ts';
import type { Sold } from '../replicas/store.ts';
import type { Scenario } from '../scenario.ts';
import type { Clients } from '../workload/clients.ts';
import { Counts, isNotCordoned, isWithinCount } from './counts.ts';
import { orderNamesARequest, removalHasAnOrder } from './orders.ts';
import {
  callsAreSerial,
  diskIsKept,
  nothingMadeForTheDead,
  oneMachineForARow,
  rowComesFirst,
  singleStaysSingle,
} from './platform.ts';
import { RowInspector } from './row-inspector.ts';
import {
  createIsNotGivenUp,
  destroyedIsProved,
  endIsTrue,
  silenceProvesNothing,
  type Written,
} from './rows.ts';
import { nothingEndsThere } from './sound-platform.ts';
import {
  noVolumeForTheDead,
  rowComesBeforeVolume,
  type VolumeWritten,
  volumeEndIsTrue,
  volumeGoneIsProved,
} from './volume-rows.ts';

/** What the inspector compares the rows and replies with. */
interface InspectedWorld extends OrchestratorWorld {
  readonly scenario: Scenario;
  readonly traits: Traits;
  readonly callTimeoutMs: number;
  readonly machines: AllMachines;
  readonly troubled: Pick<Site, 'hosts'>;
  readonly volumes: AllVolumes;
  readonly ssh: SimulatedSsh;
  readonly clients: Clients;
  readonly cordons: { readonly standing: readonly CordonRecord[] };
}

const KEPT_CALLS = 12;

/** Observes every part of a run on a simulated platform. */
export class Inspector extends RowInspector<InspectedWorld> implements PlatformObserver, CountObserver {
  readonly #calls = new Map<string, Call[]>();
  readonly #machinesLost = new Set<string>();
  readonly #made = new Set<string>();
  /** Owner refs whose machine the platform will never make in full. */
  readonly #refusedParts = new Set<string>();
  readonly #counts = new Counts();
  /** Owner refs of which a create reached the platform later than the manifest allows. */
  readonly #late = new Set<string>();
  #landing: Call | undefined;
  /** How many machines were truly lost or broke down. */
  losses = 0;

  /** Runs what a call does to the platform; observers called meanwhile know by which call. */
  land<T>(call: Call, apply: () => T): T {
    this.#landing = call;
    try {
      return apply();
    } finally {
      this.#landing = undefined;
    }
  }

  counted({ process, askedAt, free, held }: Parameters<CountObserver['counted']>[0]): void {
    this.#counts.add({ process, askedAt, arrivedAt: this.world.scheduler.now }, free, held);
  }

  override storeFailed(process: ServerProcess): void {
    this.#counts.storeFailed(process, this.world.scheduler.now);
  }

  override sold(process: ServerProcess, sold: Sold): void {
    const { scheduler, traits, tally, callTimeoutMs, catalog, cordons } = this.world;
    const platform = catalog.offers.get(sold.offerId)?.platform ?? '';
    if (process.pausedUntil === 0)
      this.check(() => isNotCordoned(sold, platform, cordons.standing, process.name));
    // One that was paused between its count and its sale cannot know.
    if (traits.counts === 'not' || process.pausedUntil > 0) return;
    const { now } = scheduler;
    const isClockTrue = tally.clockJumps === 0;
    const place = `${sold.offerId} ${sold.region}`;
    const most = this.#counts.most(process, place, { now, callTimeoutMs, isClockTrue });
    this.check(() => isWithinCount(sold, most, process.name));
  }

  called(call: Call): void {
    if (call.ref === undefined) return;
    const calls = this.#calls.get(call.ref) ?? [];
    const isOwned = this.history.byRef(call.ref)?.status !== 'DESTROYED';
    if (isOwned) this.check(() => callsAreSerial(call, calls, this.world.callTimeoutMs));
    calls.push(call);
    this.#calls.set(call.ref, calls.slice(-KEPT_CALLS));
  }

  made(machine: Machine): void {
    const { ref } = machine.spec;
    this.world.journal.note('platform', `makes ${ref} (${machine.diskId})`);
    if (this.isLandingLate()) this.#late.add(ref);
    const row = this.history.byRef(ref);
    this.check(() => rowComesFirst(ref, row));
    const wasOnline =
      row !== undefined && this.history.versions(row.id).some(({ record }) => record.status === 'ONLINE');
    if (!this.#late.has(ref))
      this.check(() => {
        oneMachineForARow(this.world.machines.of(ref));
        nothingMadeForTheDead(ref, row);
        if (this.#made.has(ref)) diskIsKept(ref, { wasOnline, isLost: this.#machinesLost.has(ref) });
      });
    this.#made.add(ref);
  }

  partRefused({ spec: { ref } }: Machine): void {
    this.#refusedParts.add(ref);
  }

  removalOrdered({ spec: { ref } }: Machine): void {
    this.check(() => removalHasAnOrder(ref, this.history.byRef(ref)));
  }

  removed({ spec: { ref } }: Machine, cause: Cause): void {
    this.world.journal.note('platform', `has no ${ref} any more: ${cause}`);
    if (cause !== 'destroyed') this.machineLost(ref);
  }

  /** The machine was lost, or broke down. */
  machineLost(ref: string): void {
    if (!this.#machinesLost.has(ref)) this.losses++;
    this.#machinesLost.add(ref);
  }

  volumeMade({ spec: { ref } }: PlatformVolume): void {
    this.world.journal.note('platform', `makes ${ref}`);
    if (this.isLandingLate()) this.#late.add(ref);
    const row = this.history.volumeByRef(ref);
    this.check(() => rowComesBeforeVolume(ref, row));
    if (!this.#late.has(ref)) this.check(() => noVolumeForTheDead(ref, row));
  }

  /** Whether a create of the ref came later than the manifest allows. Berth reports and keeps what it made. */
  isLate(ref: string): boolean {
    return this.#late.has(ref);
  }

  volumeRemoved({ spec: { ref } }: PlatformVolume): void {
    this.world.journal.note('platform', `has no ${ref} any more`);
    this.check(() => removalHasAnOrder(ref, this.history.volumeByRef(ref)));
  }

  attached(volume: PlatformVolume): void {
    const holders = this.world.volumes.holders(volume.spec.ref);
    this.check(() => singleStaysSingle(volume.spec.ref, volume.spec.type, holders));
  }

  protected override checkWritten(written: Written): void {
    const { after } = written;
    const { machines, ssh, scheduler, scenario, clients, tally } = this.world;
    const { hosts } = this.world.troubled;
    if (scenario.hasSoundServers) nothingEndsThere(after);
    this.checkRow(written, ssh.proof(after.ownerRef, after.spec.sshKeys));
    const isInTime = scheduler.now < after.createdAt + after.spec.onlineWithinMs && tally.clockJumps === 0;
    const isEarly = isInTime && !this.#refusedParts.has(after.ownerRef);
    const own = machines.of(after.ownerRef);
    const unreached = own.find((machine) => hosts?.isReached(machine) === false);
    const truth = {
      machines: own,
      silentHost: unreached && hosts?.of(unreached)?.name,
      isEarly,
      hasSuffered: this.#machinesLost.has(after.ownerRef),
      isDeleteSent: clients.hasAskedToDelete(after.id),
    };
    orderNamesARequest(written, { ...truth, isPolicySet: scenario.heldFailuresS !== null });
    if (!this.#late.has(after.ownerRef)) silenceProvesNothing(written, truth);
    endIsTrue(written, truth);
    createIsNotGivenUp(written, truth);
    if (!this.#late.has(after.ownerRef)) destroyedIsProved(written, own);
  }

  protected override checkVolumeWritten(written: VolumeWritten): void {
    const { volumes, clients } = this.world;
    const { id, ownerRef } = written.after;
    this.checkVolumeRow(written);
    const isDeleteSent = clients.hasAskedToDelete(id);
    orderNamesARequest(written, { isDeleteSent, isPolicySet: false });
    if (this.#late.has(ownerRef)) return;
    const exists = volumes.all().some(({ spec }) => spec.ref === ownerRef);
    const truth = { exists, isDeleteSent };
    volumeGoneIsProved(written, truth);
    volumeEndIsTrue(written, truth);
  }

  promiseLeftMs(): number {
    const { scheduler, traits } = this.world;
    const { createVisibleWithinMs } = traits.manifest;
    const sentAt = this.#landing?.sentAt ?? scheduler.now;
    return Math.max(0, sentAt + createVisibleWithinMs - scheduler.now);
  }

  /**
   * Whether the call that reaches the platform now comes later than the manifest allows, or from a process that was
   * paused and lost its lease. What it makes may appear after it was proved absent; the orphan sweep removes it.
   */
  isLandingLate(): boolean {
    const call = this.#landing;
    if (call === undefined) return false;
    const { scheduler, traits, callTimeoutMs } = this.world;
    // Until then its caller waits for the answer and holds the lease.
    const promisedMs = Math.max(traits.manifest.createVisibleWithinMs, callTimeoutMs);
    return scheduler.now - call.sentAt > promisedMs || call.process.pausedUntil > 0;
  }
}
