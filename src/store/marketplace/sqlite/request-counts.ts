import type { Store } from '../../../marketplace/model/store.ts';

/** From so many windows on, those that are over are forgotten at each new one. */
const MANY = 10_000;
/** So many windows are kept; the one that began first goes. */
const MOST = 100_000;

/** How many requests there were, for one process: nothing of it is worth a disk. */
export class RequestCounts {
  readonly #windows = new Map<string, { count: number; endsAt: number }>();

  count({ name, now, lengthMs }: Parameters<Store['countRequest']>[0]): { count: number; endsAt: number } {
    const known = this.#windows.get(name);
    // One that ends further away was begun while the clock was wrong.
    if (known !== undefined && known.endsAt > now && known.endsAt <= now + lengthMs) {
      known.count++;
      return { ...known };
    }
    this.#windows.delete(name);
    this.#forget(now);
    const begun = { count: 1, endsAt: now + lengthMs };
    this.#windows.set(name, begun);
    return { ...begun };
  }

  /** In the order in which they began: of windows of one length the first is the first to be over. */
  #forget(now: number): void {
    if (this.#windows.size < MANY) return;
    for (const [name, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST) return;
      this.#windows.delete(name);
    }
  }
}
