import { audit } from '../../operators/audit.ts';
import type { Actor } from '../../operators/model.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import type { ObservedMachine, OwnerRef, Step } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { anyNote } from './rowless.ts';

export interface Orphan extends Pick<ObservedMachine, 'ref' | 'power'> {
  action: 'log' | 'stop' | 'reap';
}

/** Applies `reconcile.orphans` to machines with our tag whose row is missing and cannot be restored. */
export class OrphanPolicy {
  readonly #context: ReconcileContext;
  /** Machines for which a call is under way. */
  readonly #underWay = new Set<OwnerRef>();

  constructor(context: ReconcileContext) {
    this.#context = context;
  }

  /** If the platform keeps notes, a machine without ours may be another installation's: it is only logged. */
  judge(machine: ObservedMachine): Orphan {
    const { driver, options, installationId } = this.#context;
    const { ref, power } = machine;
    const isOurs = !driver.manifest.keepsNotes || readNote(machine, installationId, anyNote).owner === 'ours';
    const wanted = isOurs ? options.orphans : 'log';
    return { ref, power, action: wanted === 'stop' && power !== 'running' ? 'log' : wanted };
  }

  /** The policy is the request, so the audit log has it before the call. */
  async act({ ref, action }: Orphan): Promise<void> {
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
    // Not awaited: a call that hangs delays no sweep. `#underWay` prevents a second call.
    void acting
      .then(({ outcome }) => log.warn({ ref, action, outcome }, 'acted on an orphan'))
      .catch((error) => log.warn({ ref, action, err: error }, 'acted on an orphan'))
      .finally(() => {
        timer.cancel();
        this.#underWay.delete(ref);
      });
  }
}
