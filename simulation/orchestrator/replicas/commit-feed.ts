import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import type { CommitListener } from '../../../src/orchestrator/model/store.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';

/** A process notices that it misses commits when one has been under way for this long. */
const NOTICED_AFTER_MS = 3_000;

/** What a commit wrote. */
export type Commit = { instances: readonly InstanceRecord[] } | { work: true };

/** Tells one process of commits: of its own at once, of other processes' after a delay, and of none while partitioned. */
export class CommitFeed {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #process: ServerProcess;
  readonly #listeners = new Set<CommitListener>();
  /** When each commit that is under way was sent, in order. */
  readonly #underWay: number[] = [];
  #lastArrivalAt = 0;
  #partitionedSince: number | undefined;
  #hasMissed = false;

  constructor(scheduler: Scheduler, chance: Chance, process: ServerProcess) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#process = process;
  }

  get subscriptions(): number {
    return this.#listeners.size;
  }

  subscribe(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  isCurrent(): boolean {
    const oldest = Math.min(
      this.#underWay[0] ?? Number.POSITIVE_INFINITY,
      this.#partitionedSince ?? Number.POSITIVE_INFINITY,
    );
    return this.#scheduler.now - oldest < NOTICED_AFTER_MS || oldest === Number.POSITIVE_INFINITY;
  }

  /** A commit of this process itself. */
  tellNow(commit: Commit): void {
    if (!this.#process.isDead) this.#tell(commit);
  }

  /** A commit of another process. */
  tellSoon(commit: Commit): void {
    if (this.#process.isDead) return;
    if (this.#partitionedSince !== undefined) {
      this.#hasMissed = true;
      return;
    }
    const delay = this.#chance.happens(0.05) ? this.#chance.between(300, 2_500) : this.#chance.between(1, 80);
    const at = Math.max(this.#lastArrivalAt, this.#scheduler.now + delay);
    this.#lastArrivalAt = at;
    this.#underWay.push(this.#scheduler.now);
    this.#scheduler.after(at - this.#scheduler.now, () =>
      this.#process.whenRunning(() => {
        this.#underWay.shift();
        this.#tell(commit);
      }),
    );
  }

  /** From now on no commit of another process arrives. */
  partition(): void {
    this.#partitionedSince ??= this.#scheduler.now;
  }

  heal(): void {
    if (this.#partitionedSince === undefined) return;
    this.#process.whenRunning(() => {
      if (this.#hasMissed) for (const listener of this.#listeners) listener.commitsMissed?.();
      this.#partitionedSince = undefined;
      this.#hasMissed = false;
    });
  }

  #tell(commit: Commit): void {
    for (const listener of this.#listeners)
      if ('work' in commit) listener.workChanged?.();
      else listener.instancesChanged?.(commit.instances);
  }
}
