import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Store, Transaction } from '../../orchestrator/model/store.ts';
import type { Log } from '../../ports/log.ts';

/**
 * Makes the work of machines and volumes due at once after a change that no call of the driver made. A running step
 * sets the time of the next one when it ends, so the wake-up is repeated then.
 */
export class WakeUps {
  readonly #store: Pick<Store, 'transact'>;
  readonly #now: () => number;
  readonly #open = new Set<OwnerRef>();
  #isAsked = false;
  #isClosed = false;
  #waking: Promise<void> | undefined;
  readonly #log: Pick<Log, 'error'>;

  constructor({
    store,
    now,
    log,
  }: { store: Pick<Store, 'transact'>; now: () => number; log: Pick<Log, 'error'> }) {
    this.#store = store;
    this.#now = now;
    this.#log = log;
  }

  /** Nothing is woken from now on. Call it before the store is closed. */
  close(): void {
    this.#isClosed = true;
    this.#open.clear();
  }

  add(ref: OwnerRef): void {
    this.#open.add(ref);
    this.committed();
  }

  /** Call it after each transaction of the orchestrator. */
  committed(): void {
    if (this.#open.size === 0 || this.#isClosed) return;
    this.#isAsked = true;
    this.#waking ??= this.#wake()
      // The next transaction tries again.
      .catch((err) => {
        if (!this.#isClosed) this.#log.error({ err }, 'held work could not be continued');
      })
      .finally(() => {
        this.#waking = undefined;
      });
  }

  async #wake(): Promise<void> {
    while (this.#isAsked) {
      this.#isAsked = false;
      const refs = [...this.#open];
      const woken = await this.#store.transact(async (tx) => {
        const made: OwnerRef[] = [];
        for (const ref of refs) if (await this.#makeDue(tx, ref)) made.push(ref);
        return made;
      });
      for (const ref of woken) this.#open.delete(ref);
    }
  }

  /** Returns false if a step of the work is running. */
  async #makeDue(tx: Transaction, ref: OwnerRef): Promise<boolean> {
    const row = (await tx.instances.byOwnerRef(ref)) ?? (await tx.volumes.byOwnerRef(ref));
    const id = row?.id ?? ref;
    const work = await tx.work.of(id);
    if (work !== null && work.leaseUntil > 0) return false;
    if (work !== null) await tx.work.makeDue(id, this.#now());
    return true;
  }
}
