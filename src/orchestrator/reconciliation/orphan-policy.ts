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

const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 60 * 60_000;

/** Applies `orphans` to machines, or parts of machines, with Berth's tag whose row is missing and cannot be restored. */
export class OrphanPolicy {
  readonly #context: ReconcileContext;
  /** Machines with a call in progress. */
  readonly #underWay = new Set<OwnerRef>();
  /** How often it acted on a machine that is still there, and when it may act again. */
  readonly #tries = new Map<OwnerRef, { count: number; notBefore: number }>();

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

  /** Carries out the action, ever more seldom while that ends nothing. The policy counts as the request, so the audit log records it before the call. */
  async act({ ref, action }: Orphan): Promise<void> {
    const { driver, log, clock, store, alarms } = this.#context;
    if (action === 'log' || this.#underWay.has(ref)) return;
    const now = clock.now();
    const { count, notBefore } = this.#tries.get(ref) ?? { count: 0, notBefore: now };
    if (now < notBefore) return;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** count);
    this.#tries.set(ref, { count: count + 1, notBefore: now + pauseMs });
    const order = recordedOrder({ reason: 'policy', by: alarms.server, at: now });
    await store.transact((tx) =>
      auditByServer(this.#context, tx, { action: `machine.${action}`, subject: ref }),
    );
    this.#underWay.add(ref);
    // Not awaited, so a call that hangs does not delay the sweep. `#underWay` prevents a second call.
    void callOnce<Step<unknown>>(this.#context, (limits) =>
      action === 'stop' ? driver.stop(ref, null, limits) : driver.destroy(ref, null, order, limits),
    )
      .then((step) => {
        const reason = step.outcome === 'failed' ? `${step.code}: ${step.detail}` : undefined;
        log.warn({ ref, action, outcome: step.outcome, reason }, 'acted on an orphan');
      })
      .catch((error) => log.warn({ ref, action, err: error }, 'acted on an orphan'))
      .finally(() => this.#underWay.delete(ref));
  }
  /** Forgets the tries of machines that are not orphans any more. */
  retain(orphans: readonly Orphan[]): void {
    const refs = new Set(orphans.map(({ ref }) => ref));
    for (const ref of this.#tries.keys()) if (!refs.has(ref)) this.#tries.delete(ref);
  }
}
