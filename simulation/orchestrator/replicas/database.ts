import type { CommitListener, Store, Transaction } from '../../../src/orchestrator/model/store.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { Beginning, SharedDatabase } from '../../kernel/shared-database.ts';

/** The database that all replicas share: the real store. */
export class Database {
  readonly #shared: SharedDatabase<Store>;
  #writer: ServerProcess | null = null;
  /** Until when the last pause of a process was that had the transaction for which others waited; 0: there was none. */
  heldUpUntil = 0;
  /** When the next work can be claimed, cached until work is written; undefined: not cached. */
  readonly #nextWorkAt = new Map<string, Promise<number | null>>();

  constructor(
    shared: SharedDatabase<Store>,
    onCommit: CommitListener,
    parts: Pick<Beginning<Store>, 'scheduler' | 'isShared'>,
  ) {
    this.#shared = shared;
    shared.begin({
      ...parts,
      opened: (store) => {
        this.#nextWorkAt.clear();
        store.subscribe(onCommit);
      },
    });
  }

  /** The process whose transaction runs or ran last; null: the operator's. */
  get writer(): ServerProcess | null {
    return this.#writer;
  }

  set writer(next: ServerProcess | null) {
    const before = this.#writer;
    if (before !== null && !before.isPaused)
      this.heldUpUntil = Math.max(this.heldUpUntil, before.pausedUntil);
    this.#writer = next;
  }

  get store(): Store {
    return this.#shared.store;
  }

  /** Runs a transaction. If it writes work, its caller calls {@link workWritten}. */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.store.transact(body);
  }

  workWritten(): void {
    this.#nextWorkAt.clear();
  }

  nextWorkAt(platform: string): Promise<number | null> {
    const known = this.#nextWorkAt.get(platform) ?? this.store.nextWorkAt(platform);
    this.#nextWorkAt.set(platform, known);
    return known;
  }

  /** Asks the store only when something can be claimed. */
  async claimWork(claim: Parameters<Store['claimWork']>[0]): Promise<Lease[]> {
    const next = await this.nextWorkAt(claim.platform);
    if (next === null || next > claim.now) return [];
    const leases = await this.store.claimWork(claim);
    if (leases.length > 0) this.#nextWorkAt.clear();
    return leases;
  }

  async takeOverWork(now: number): Promise<void> {
    await this.store.takeOverWork(now);
    this.#nextWorkAt.clear();
  }

  /** See {@link SharedDatabase}. */
  cutPower(): Promise<void> {
    return this.#shared.cutPower();
  }

  copy(): Promise<string> {
    return this.#shared.copy();
  }

  goBack(copy: string): Promise<void> {
    return this.#shared.goBack(copy);
  }

  close(): Promise<void> {
    return this.#shared.close();
  }
}
