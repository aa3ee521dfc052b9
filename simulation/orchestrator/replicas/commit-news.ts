import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import type { CommitListener } from '../../../src/orchestrator/model/store.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Life } from '../../kernel/process.ts';
import type { Scheduler } from '../../kernel/scheduler.ts';

/** After this long without news a process knows that it may be missing some. */
const NOTICED_AFTER_MS = 3_000;

type News = { instances: readonly InstanceRecord[] } | { work: true };

/** How one process hears of commits: of its own at once, of others' soon, and of some not at all. */
export class CommitNews {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #life: Life;
  readonly #listeners = new Set<CommitListener>();
  /** When each piece of news was sent that has not arrived, in order. */
  readonly #onTheWay: number[] = [];
  #lastArrivalAt = 0;
  #partitionedSince: number | undefined;
  #hasMissed = false;

  constructor(scheduler: Scheduler, chance: Chance, life: Life) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#life = life;
  }

  get subscriptions(): number {
    return this.#listeners.size;
  }

  subscribe(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  hears(): boolean {
    const oldest = Math.min(
      this.#onTheWay[0] ?? Number.POSITIVE_INFINITY,
      this.#partitionedSince ?? Number.POSITIVE_INFINITY,
    );
    return this.#scheduler.now - oldest < NOTICED_AFTER_MS || oldest === Number.POSITIVE_INFINITY;
  }

  /** A commit of this process itself. */
  tellNow(news: News): void {
    if (!this.#life.isDead) this.#tell(news);
  }

  /** A commit of another process. */
  tellSoon(news: News): void {
    if (this.#life.isDead) return;
    if (this.#partitionedSince !== undefined) {
      this.#hasMissed = true;
      return;
    }
    const delay = this.#chance.happens(0.05) ? this.#chance.between(300, 2_500) : this.#chance.between(1, 80);
    const at = Math.max(this.#lastArrivalAt, this.#scheduler.now + delay);
    this.#lastArrivalAt = at;
    this.#onTheWay.push(this.#scheduler.now);
    this.#scheduler.after(at - this.#scheduler.now, () =>
      this.#life.whenRunning(() => {
        this.#onTheWay.shift();
        this.#tell(news);
      }),
    );
  }

  /** From now on no news arrives. */
  partition(): void {
    this.#partitionedSince ??= this.#scheduler.now;
  }

  heal(): void {
    if (this.#partitionedSince === undefined) return;
    this.#life.whenRunning(() => {
      if (this.#hasMissed) for (const listener of this.#listeners) listener.commitsMissed?.();
      this.#partitionedSince = undefined;
      this.#hasMissed = false;
    });
  }

  #tell(news: News): void {
    for (const listener of this.#listeners)
      if ('work' in news) listener.workChanged?.();
      else listener.instancesChanged?.(news.instances);
  }
}
