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

/** What `reconcile.orphans` says about machines with our tag that have no row, and never had one that can be restored. */
export class OrphanPolicy {
  readonly #context: ReconcileContext;
  /** Those that a call is under way for. */
  readonly #underWay = new Set<OwnerRef>();

  constructor(context: ReconcileContext) {
    this.#context = context;
  }

  /** A machine without a note of ours, where the platform keeps notes, may be another installation's. */
  judge(machine: ObservedMachine): Orphan {
    const { driver, options, installationId } = this.#context;
    const { ref, power } = machine;
    const isOurs = !driver.manifest.keepsNotes || readNote(machine, installationId, anyNote).owner === 'ours';
    const wanted = isOurs ? options.orphans : 'log';
    return { ref, power, action: wanted === 'stop' && power !== 'running' ? 'log' : wanted };
  }

  /** The operator's policy is the request: it is recorded before the call. */
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
    // A call that does not end delays no sweep, and gets no second one beside it.
    void acting
      .then(({ outcome }) => log.warn({ ref, action, outcome }, 'acted on an orphan'))
      .catch((error) => log.warn({ ref, action, err: error }, 'acted on an orphan'))
      .finally(() => {
        timer.cancel();
        this.#underWay.delete(ref);
      });
  }
}
