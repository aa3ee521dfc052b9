import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Store, Transaction } from '../../orchestrator/model/store.ts';
import type { Log } from '../../ports/log.ts';

/**
 * Makes the work of machines and volumes due at once after a change that no call of the driver made. A running step
 * sets the time of the next one when it ends, so the wake-up is repeated then.
 */
export function createWakeUps(transact: Store['transact'], now: () => number, log: Pick<Log, 'error'>) {
  const open = new Set<OwnerRef>();
  let isAsked = false;
  let isClosed = false;
  let isWaking = false;

  async function wake(): Promise<void> {
    while (isAsked) {
      isAsked = false;
      const refs = [...open];
      const woken = await transact(async (tx) => {
        const made: OwnerRef[] = [];
        for (const ref of refs) if (await makeDue(tx, ref, now())) made.push(ref);
        return made;
      });
      for (const ref of woken) open.delete(ref);
    }
  }

  /** Call it after each transaction of the orchestrator. */
  function committed(): void {
    if (open.size === 0 || isClosed) return;
    isAsked = true;
    if (isWaking) return;
    isWaking = true;
    void wake()
      // The next transaction tries again.
      .catch((err) => {
        if (!isClosed) log.error({ err }, 'held work could not be continued');
      })
      .finally(() => {
        isWaking = false;
      });
  }

  return {
    committed,
    add(ref: OwnerRef): void {
      open.add(ref);
      committed();
    },
    /** Nothing is woken from now on. Call it before the store is closed. */
    close(): void {
      isClosed = true;
      open.clear();
    },
  };
}

/** Returns false if a step of the work is running. */
async function makeDue(tx: Transaction, ref: OwnerRef, now: number): Promise<boolean> {
  const row = (await tx.instances.byOwnerRef(ref)) ?? (await tx.volumes.byOwnerRef(ref));
  const id = row?.id ?? ref;
  const work = await tx.work.of(id);
  if (work !== null && work.leaseUntil > 0) return false;
  if (work !== null) await tx.work.makeDue(id, now);
  return true;
}
