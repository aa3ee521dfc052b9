import { forEachInSlices, inSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import { amend } from '../instances/transition.ts';
import { generationOf, idOf } from '../model/attempt.ts';
import type { ObservedMachine, OwnerRef } from '../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { confirmMachine } from '../platform/confirm-gone.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { ExpectedMachines } from '../platform/expected-machines.ts';
import type { Listed } from '../platform/shared-listing.ts';
import {
  isCreateOpen,
  isUnderWay,
  removeAgain,
  removeOtherAttempt,
  removeWithoutRow,
  supersede,
} from '../platform/superseded-attempts.ts';
import { recordHosts } from '../platform/visibility.ts';
import { adoptMachine } from './adopt-machine.ts';
import { Deviations } from './deviations.ts';
import { ResourcesWithoutRow } from './without-row.ts';

const AT_ONCE = 16;
const ORPHAN =
  'a machine with our tag has no instance, or its instance ended without a delete request: it may cost money and hold data. ' +
  'Inspect it on the platform, then `berth orphans adopt`, `release` or `rm`';

/**
 * Handles listed machines without a live row: it restores missing rows from notes, and removes a machine whose end was
 * ordered once two listings show it. A machine whose instance ended by itself, or that may not be Berth's, raises an
 * alarm: only an operator decides about it.
 */
export class MachineSweep {
  readonly #context: ReconcileContext;
  readonly #expected: ExpectedMachines;
  readonly #isStopped: () => boolean;
  readonly #withoutRow: ResourcesWithoutRow<ObservedMachine>;
  readonly #deviations: Deviations;
  #listedBefore: ReadonlySet<OwnerRef> = new Set();
  #orphans: ObservedMachine[] = [];

  constructor(context: ReconcileContext, expected: ExpectedMachines, isStopped: () => boolean) {
    this.#context = context;
    this.#expected = expected;
    this.#isStopped = isStopped;
    this.#deviations = new Deviations(context, 'instance');
    this.#withoutRow = new ResourcesWithoutRow(
      context,
      'instance',
      (machine) => adoptMachine(context, machine),
      ({ ref, host }) => confirmMachine(context, { ownerRef: ref, host }),
    );
  }

  /** Returns false if it was stopped before it finished. */
  async sweep(listed: Listed<ObservedMachine>): Promise<boolean> {
    const { sightings, alarms, platform, log } = this.#context;
    const { begunAt, isTrusted, isComplete } = listed;
    const before = this.#listedBefore;
    const unowned = await this.#unowned(listed.items.values());
    if (isTrusted) this.#listedBefore = new Set(unowned.map(({ ref }) => ref));
    this.#orphans = [];
    this.#withoutRow.begin();
    sightings.areUnrecorded = unowned.some(({ ref }) => this.#expected.get(ref) === undefined);
    const pace = { atOnce: AT_ONCE, isStopped: this.#isStopped };
    const isOver = await forEachInSlices(unowned, pace, async (machine) => {
      if (this.#withoutRow.isForeign(machine)) return;
      await this.#judge(machine, { isListedAgain: isTrusted && before.has(machine.ref), begunAt });
    });
    if (!isOver) return false;
    await this.#withoutRow.end(listed);
    await sightings.compared('instance', listed);
    sightings.areUnrecorded = false;
    if (!isTrusted) return true;
    await this.#deviations.sweep(listed);
    const kind = {
      kind: 'orphan_machine' as const,
      platform,
      text: ORPHAN,
      subjectOf: ({ ref }: ObservedMachine) => ref,
      describe: ({ power }: ObservedMachine) => `it is ${power}`,
      fields: ({ ref, power }: ObservedMachine) => ({ ref, power }),
      log,
    };
    raiseFolded(alarms, kind, this.#orphans, isComplete);
    return true;
  }

  /** Machines without a row, or whose row has ended. */
  async #unowned(machines: Iterable<ObservedMachine>): Promise<ObservedMachine[]> {
    const unowned: ObservedMachine[] = [];
    for await (const slice of inSlices(machines))
      for (const machine of slice) {
        const status = this.#expected.get(machine.ref)?.status;
        if (status === undefined || status === 'ERROR' || status === 'OFFLINE') unowned.push(machine);
      }
    return unowned;
  }

  async #judge(
    machine: ObservedMachine,
    { isListedAgain, begunAt }: { isListedAgain: boolean; begunAt: number },
  ): Promise<void> {
    const { store, platform, sightings, log } = this.#context;
    const row =
      (await store.read.instances.byOwnerRef(machine.ref)) ??
      (await store.read.instances.byId(idOf(machine.ref)));
    if (row === null) {
      if (await removeWithoutRow(this.#context, machine.ref, begunAt)) return;
      const mayBeOrphan = await this.#withoutRow.adopt(machine);
      // After a restore, the row of such a machine was more likely lost.
      if (mayBeOrphan && isListedAgain && !sightings.isRestored) this.#orphans.push(machine);
      return;
    }
    if (row.platform !== platform) return;
    // Another instance adopted the machine, or its name was given up.
    if (idOf(row.ownerRef) !== idOf(machine.ref)) return;
    if (row.ownerRef !== machine.ref) return this.#judgeAttempt(row, machine, isListedAgain);
    // The host that has its kept disks must later prove their removal. It may have another name by then.
    if (row.status === 'DESTROYED' && machine.host !== undefined && machine.host !== row.host)
      await recordHosts(this.#context, [[row.id, machine.host]]);
    if (!isListedAgain) return;
    if (row.destroyOrder !== null) {
      // A late create made it after its absence was proved.
      if (await removeAgain(this.#context, 'instance', row.id, begunAt))
        log.error(
          { ...instanceLogNames(row), ref: machine.ref, power: machine.power, status: row.status },
          'the machine of a deleted instance is still there: it is removed, or switched off while its disks are kept',
        );
      return;
    }
    // The machine of a failed instance is kept on purpose, and a SPOT machine is being reclaimed.
    if (row.status !== 'DESTROYING' && (await store.read.work.of(row.id))?.kind !== 'hold')
      this.#orphans.push(machine);
  }

  /**
   * Handles a machine of an earlier attempt, or of a later one that is not in a restored backup. The later one becomes the
   * instance's machine unless a tenant may have used the row's own: then both stay, with an alarm.
   */
  async #judgeAttempt(row: InstanceRecord, machine: ObservedMachine, isListedAgain: boolean): Promise<void> {
    const { ref } = machine;
    const { store, clock, log, alarms, platform } = this.#context;
    const isLater = generationOf(ref) > generationOf(row.ownerRef);
    if (!isLater && !isListedAgain) return;
    if ((await removeOtherAttempt(this.#context, 'instance', { id: row.id, ref })) !== 'later') return;
    const wasCreating = await isCreateOpen(store.read, row.id);
    const isUnused = wasCreating || (await confirmMachine(this.#context, row)).answer === 'gone';
    if (!isUnused) return void this.#orphans.push(machine);
    await store.transact(async (tx) => {
      const current = await tx.instances.byId(row.id);
      if (current === null || current.ownerRef !== row.ownerRef || current.destroyOrder !== null) return;
      if (current.status !== row.status || (await isCreateOpen(tx, row.id)) !== wasCreating) return;
      if (await isUnderWay(tx, { id: row.id, ref }, clock.now())) return;
      await supersede(tx, { ...current, resourceKind: 'instance', platform }, alarms.server, clock.now());
      await amend(tx, current, clock.now(), { ownerRef: ref, host: machine.host ?? null });
      log.warn(
        { ...instanceLogNames(current), ref },
        'the platform has a later attempt of an instance than its row: the later one becomes its machine',
      );
    });
  }
}
