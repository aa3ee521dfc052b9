import type { Timer } from '../../ports/clock.ts';
import { forEachInSlices, inSlices } from '../../ports/in-slices.ts';
import { eachLiveInstance } from '../instances/list.ts';
import type { ObservedMachine, ObservedVolume, OwnerRef, Power } from '../model/platform-driver.ts';
import { putInstanceWork } from '../model/rows.ts';
import { within } from '../platform/call-platform.ts';
import type { ReconcileContext, Recording } from '../platform/context.ts';
import { changedBefore, type ExpectedMachine, type ExpectedMachines } from '../platform/expected-machines.ts';
import { judgeHosts } from '../platform/loss-cap.ts';
import { MachineAlarms } from '../platform/machine-alarms.ts';
import { isUnseen, type Listed } from '../platform/shared-listing.ts';
import { isNewlyVisible, markMachinesVisible, recordHosts } from '../platform/visibility.ts';
import { reportRefusals } from '../steps/refusals.ts';
import { reconcileVolume } from './adopt-volume.ts';
import { endRestore, reconcileMachines, restoredFrom } from './restored-rows.ts';
import { MachineSweep } from './sweep-machines.ts';
import { VolumeSweep } from './sweep-volumes.ts';

/** How many ids a log line contains. */
const SOME = 10;
const UNLISTED =
  'the platform has given no complete listing since the start: unknown ids are now answered 404, although their ' +
  'rows may have been lost. Fix the platform or the host that does not answer';

/**
 * Compares each listing of one platform with the rows. It reads a machine again that differs from its row, restores or
 * records missing rows, and removes resources that exist although their end was ordered. After a restore from a backup,
 * the work of each row waits until the row is reconciled with its machine.
 */
export class DriftDetector {
  readonly #context: ReconcileContext;
  readonly #expected: ExpectedMachines;
  readonly #machines: MachineSweep;
  readonly #volumes: VolumeSweep;
  readonly #begin: () => void;
  readonly #reconciledVolumes = new Set<OwnerRef>();
  /** Rows that changed before this time come from the backup, in milliseconds since the epoch. */
  #beganAt = 0;
  #isHoldLogged = false;
  #timer: Timer | undefined;
  #doubt: Timer | undefined;
  #round: Promise<void> = Promise.resolve();
  #counting: Promise<void> | undefined;
  #isStopped = false;

  /** `begin` starts the durable work, once the rows that have to wait are known. */
  constructor(context: ReconcileContext, expected: ExpectedMachines, begin: () => void) {
    this.#context = context;
    this.#expected = expected;
    this.#begin = begin;
    this.#machines = new MachineSweep(context, expected, () => this.#isStopped);
    this.#volumes = new VolumeSweep(context, () => this.#isStopped);
  }

  /**
   * Waits for the first listing, and then for its comparison, at most the call timeout. Nothing is sold or decided
   * before the first listing.
   */
  async start(): Promise<void> {
    const { sightings, options, clock, machines } = this.#context;
    await this.#expected.refresh();
    await sightings.load();
    const first = await machines.observe();
    await this.#count(first);
    const takenAt = await restoredFrom(this.#context);
    if (takenAt !== null) await this.#holdWork(takenAt, first);
    this.#begin();
    this.#doubt = clock.setTimer(options.restoreDoubtMs, () => this.#endDoubt());
    this.#scheduleNext(this.#compare(first));
    await within(this.#context, this.#round);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#doubt?.cancel();
    await Promise.all([this.#round, this.#counting]);
    this.#expected.close();
  }

  /** Runs one round. Never rejects. Does not wait for the count of free units, which a hanging host may delay. */
  async observe(): Promise<void> {
    await reportRefusals(this.#context);
    const machines = await this.#context.machines.observe();
    void this.#count(machines);
    await this.#compare(machines);
  }

  #scheduleNext(round: Promise<void>): void {
    const { clock, options } = this.#context;
    this.#round = round.then(() => {
      if (!this.#isStopped)
        this.#timer = clock.setTimer(options.watchIntervalMs, () => this.#scheduleNext(this.observe()));
    });
  }

  /** Counts the free units, one count at a time. Never rejects. */
  async #count(listed: Listed<ObservedMachine> | null): Promise<void> {
    if (listed === null || !listed.isTrusted || this.#counting !== undefined) return;
    const { items, hosts } = listed;
    // A machine without a host may not be made yet. It will take one of the units that are counted as free.
    const unseen = new Set<OwnerRef>();
    if (hosts.answered !== 'all')
      for (const [ref, expectation] of this.#expected.entries())
        if (expectation.host !== null && !items.has(ref) && isUnseen(hosts, expectation)) unseen.add(ref);
    this.#counting = this.#context.inventory.refresh(items, unseen);
    await this.#counting;
    this.#counting = undefined;
  }

  async #compare(machines: Listed<ObservedMachine> | null): Promise<void> {
    if (machines === null || this.#isStopped || this.#context.sightings.isTaken) return;
    try {
      await this.#context.sightings.load();
      if (machines.isTrusted) await compareMachines(this.#context, this.#expected, machines);
      if (!(await this.#machines.sweep(machines))) return;
      await reconcileMachines(this.#context, machines, this.#beganAt, () => this.#isStopped);
      if (this.#isStopped) return;
      await this.#compareVolumes();
      await this.#endRecovery();
    } catch (error) {
      this.#context.log.error({ err: error }, 'the listing could not be compared with the database');
    }
  }

  async #compareVolumes(): Promise<void> {
    const { volumes, sightings, restoreHold } = this.#context;
    if (volumes === undefined) {
      restoreHold.areVolumesHeld = false;
      sightings.hasNone('volume');
      return;
    }
    const listed = await volumes.observe();
    if (listed === null) return;
    if (await this.#volumes.sweep(listed)) await this.#reconcileVolumes(listed);
  }

  async #holdWork(takenAt: number, first: Listed<ObservedMachine> | null): Promise<void> {
    const { store, platform, restoreHold, clock, log, sightings } = this.#context;
    this.#beganAt = first?.begunAt ?? clock.now();
    sightings.isRestored = true;
    for await (const row of eachLiveInstance(store.read.instances))
      if (row.platform === platform) restoreHold.instances.add(row.id);
    restoreHold.areVolumesHeld = true;
    log.warn(
      { backupTakenAt: new Date(takenAt).toISOString() },
      'this database was restored from a backup: it is compared with the platform before anything else. ' +
        'API keys that were revoked since the backup are valid again: see `berth keys ls`, and end them with `berth keys revoke <id>`',
    );
  }

  /** Reconciles each volume once. Later changes come from this process. */
  async #reconcileVolumes({ items, isComplete }: Listed<ObservedVolume>): Promise<void> {
    const { restoreHold } = this.#context;
    if (!restoreHold.areVolumesHeld) return;
    const pace = { atOnce: 1, isStopped: () => this.#isStopped };
    const isOver = await forEachInSlices([...items.values()], pace, async (volume) => {
      if (this.#reconciledVolumes.has(volume.ref)) return;
      await reconcileVolume(this.#context, volume);
      this.#reconciledVolumes.add(volume.ref);
    });
    if (isOver && isComplete) restoreHold.areVolumesHeld = false;
  }

  /** Logs once that work waits after a round, and once that no work waits any more. */
  #logHold(): void {
    const { restoreHold, log } = this.#context;
    if (restoreHold.areOver && this.#isHoldLogged)
      log.info({}, 'every row of the backup is reconciled with the platform: all work continues');
    if (!restoreHold.areOver && !this.#isHoldLogged) {
      const [...instances] = restoreHold.instances;
      const waiting = { count: instances.length, instances: instances.slice(0, SOME) };
      log.warn(
        { ...waiting, volumes: restoreHold.areVolumesHeld },
        'these rows are not yet reconciled with the platform after the restore: their work waits, all other work continues',
      );
    }
    this.#isHoldLogged = !restoreHold.areOver;
  }

  /** Ends the restore once each row is reconciled and each resource on the platform has its row. */
  async #endRecovery(): Promise<void> {
    const { sightings, restoreHold, log, alarms, platform } = this.#context;
    if (sightings.areCompared) alarms.end({ kind: 'listing_incomplete', subject: platform });
    if (!sightings.isRestored) return;
    this.#logHold();
    if (!sightings.areCompared || sightings.of('no_row').length > 0 || !restoreHold.areOver) return;
    if (await endRestore(this.#context))
      log.info({}, 'the restored database is fully reconciled with the platform');
    sightings.isRestored = false;
  }

  #endDoubt(): void {
    const { sightings, alarms, platform, log } = this.#context;
    if (sightings.areCompared || sightings.isRestored) return;
    alarms.raise({ kind: 'listing_incomplete', subject: platform, platform, text: UNLISTED }, log);
  }
}

/**
 * Compares an accepted listing with the rows. A difference changes no state: it puts `observe` work for the instance. A
 * row that changed after the listing began is compared with the next listing.
 */
async function compareMachines(
  context: ReconcileContext,
  expected: ExpectedMachines,
  { items, begunAt, hosts: hostAnswers }: Listed<ObservedMachine>,
): Promise<void> {
  const hosts = await judgeHosts(context, hostAnswers);
  const shown: string[] = [];
  const moved: [id: string, host: string][] = [];
  const alarms = new MachineAlarms(context);
  for await (const slice of inSlices(expected.entries()))
    for (const [ref, expectation] of slice) {
      const machine = items.get(ref);
      alarms.see(expectation, machine);
      if (machine === undefined && isUnseen(hosts, expectation)) continue;
      if (machine !== undefined && isNewlyVisible(expectation, begunAt, context)) shown.push(expectation.id);
      const host = machine?.host;
      if (host !== undefined && host !== expectation.host) moved.push([expectation.id, host]);
      if (changedBefore(expectation.since, begunAt, context) && differs(expectation, machine))
        await observe(context, expected, ref, expectation);
    }
  alarms.close();
  await markMachinesVisible(context, shown);
  await recordHosts(context, moved);
}

async function observe(
  { store, clock }: Recording,
  expected: ExpectedMachines,
  ref: OwnerRef,
  { id, version }: ExpectedMachine,
): Promise<void> {
  const isDestroyed = await store.transact(async (tx) => {
    const record = await tx.instances.byId(id);
    if (record === null || record.status === 'DESTROYED') return true;
    if (record.version === version && (await tx.work.of(id)) === null)
      await putInstanceWork(tx, id, 'observe', clock.now());
    return false;
  });
  // The row is forgotten after the commit: a SQLite transaction also sees uncommitted writes of the transactions before
  // it, and is rolled back with them.
  if (isDestroyed) expected.forget(ref);
}

/** What the machine of a STOPPED instance is not. One that runs without an endpoint is `starting` for as long as it has none. */
const NOT_STOPPED: ReadonlySet<Power> = new Set(['running', 'starting', 'destroying']);

/** Whether an `observe` is needed. Instances in a transitional state have work that reads the machine itself. */
function differs({ status, endpoint }: ExpectedMachine, machine: ObservedMachine | undefined): boolean {
  if (machine?.isLastKnown === true) return false;
  if (status === 'STOPPED') return machine === undefined || NOT_STOPPED.has(machine.power);
  if (status !== 'ONLINE') return false;
  if (machine === undefined || machine.power !== 'running') return true;
  return (
    machine.endpoint !== undefined &&
    (machine.endpoint.publicIp !== endpoint?.publicIp || machine.endpoint.sshPort !== endpoint.sshPort)
  );
}
