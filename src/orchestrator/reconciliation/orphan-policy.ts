import { recordedOrder } from '../model/destroy-order.ts';
import type { ObservedMachine, OwnerRef, Step } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import { callOnce } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { auditByServer } from './adopt-machine.ts';
import { anyNote } from './rowless.ts';

export interface Orphan extends Pick<ObservedMachine, 'ref' | 'power'> {
  action: 'log' | 'stop' | 'reap';
}

/** Applies `reconcile.orphans` to machines, or parts of machines, with Berth's tag whose row is missing and cannot be restored. */
export class OrphanPolicy {
  readonly #context: ReconcileContext;
  /** Machines with a call in progress. */
  readonly #underWay = new Set<OwnerRef>();

  constructor(context: ReconcileContext) {
    this.#context = context;
  }

  /**
   * Chooses the action. If the platform keeps notes, a machine without a note of this installation may belong to
   * another installation and is only logged.
   */
  judge(machine: Pick<ObservedMachine, 'ref' | 'power' | 'note'>): Orphan {
    const { driver, options, installationId } = this.#context;
    const { ref, power } = machine;
    const isOurs = !driver.manifest.keepsNotes || readNote(machine, installationId, anyNote).owner === 'ours';
    const wanted = isOurs ? options.orphans : 'log';
    return { ref, power, action: wanted === 'stop' && power !== 'running' ? 'log' : wanted };
  }

  /** Carries out the action. The policy counts as the request, so the audit log records it before the call. */
  async act({ ref, action }: Orphan): Promise<void> {
    const { driver, log, clock, store, alarms } = this.#context;
    if (action === 'log' || this.#underWay.has(ref)) return;
    const order = recordedOrder({ reason: 'policy', by: alarms.server, at: clock.now() });
    await store.transact((tx) =>
      auditByServer(this.#context, tx, { action: `machine.${action}`, subject: ref }),
    );
    this.#underWay.add(ref);
    // Not awaited, so a call that hangs does not delay the sweep. `#underWay` prevents a second call.
    void callOnce<Step<unknown>>(this.#context, (limits) =>
      action === 'stop' ? driver.stop(ref, null, limits) : driver.destroy(ref, null, order, limits),
    )
      .then(({ outcome }) => log.warn({ ref, action, outcome }, 'acted on an orphan'))
      .catch((error) => log.warn({ ref, action, err: error }, 'acted on an orphan'))
      .finally(() => this.#underWay.delete(ref));
  }
}
