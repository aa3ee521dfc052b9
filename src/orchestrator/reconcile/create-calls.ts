import type { OwnerRef } from '../ports/platform-driver.ts';

/**
 * The creates of this process that have not come back, also long after the core stopped waiting for them: a platform
 * that says `gone` proves nothing while one of them is out.
 */
export class CreateCalls {
  readonly #out = new Map<OwnerRef, number>();

  async send<T>(ref: OwnerRef, create: () => Promise<T>): Promise<T> {
    this.#add(ref, 1);
    try {
      return await create();
    } finally {
      this.#add(ref, -1);
    }
  }

  isOut(ref: OwnerRef): boolean {
    return this.#out.has(ref);
  }

  #add(ref: OwnerRef, change: 1 | -1): void {
    const count = (this.#out.get(ref) ?? 0) + change;
    if (count === 0) this.#out.delete(ref);
    else this.#out.set(ref, count);
  }
}
