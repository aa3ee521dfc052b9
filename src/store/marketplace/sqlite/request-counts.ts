import type { Store } from '../../../marketplace/model/store.ts';

/** Above this number of windows, each new one removes expired ones. */
const MANY = 10_000;
/** Maximum number of windows. The oldest is removed first. */
const MOST = 100_000;

/** Request counts of one process, in memory. They may be lost with it. */
export class RequestCounts {
  readonly #windows = new Map<string, { count: number; endsAt: number }>();

  count({ name, now, lengthMs, most = Number.POSITIVE_INFINITY }: Parameters<Store['countRequest']>[0]): {
    count: number;
    endsAt: number;
  } {
    const known = this.#windows.get(name);
    // A window that ends later was started with a wrong clock.
    if (known !== undefined && known.endsAt > now && known.endsAt <= now + lengthMs) {
      if (known.count >= most) return { ...known, count: most + 1 };
      known.count++;
      return { ...known };
    }
    this.#windows.delete(name);
    this.#forget(now);
    const begun = { count: 1, endsAt: now + lengthMs };
    this.#windows.set(name, begun);
    return { ...begun };
  }

  uncount({ name, endsAt }: Parameters<Store['uncountRequest']>[0]): void {
    const known = this.#windows.get(name);
    if (known?.endsAt === endsAt) known.count--;
  }

  /** Iterates in the order of their start: windows of one length end in that order. */
  #forget(now: number): void {
    if (this.#windows.size < MANY) return;
    for (const [name, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST) return;
      this.#windows.delete(name);
    }
  }
}
