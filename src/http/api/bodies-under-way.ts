/** The bytes that a server has received of bodies whose requests have not ended. */
export class BodiesUnderWay {
  readonly #maxBytes: number;
  readonly #bySender = new Map<string, number>();
  #bytes = 0;

  /** `maxBytes`: of all bodies together. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Begins a body. `sender` is its key, or its network if it has none. */
  begin(sender: string): BodyUnderWay {
    let own = 0;
    return {
      reserve: (bytes) => {
        const more = bytes - own;
        if (more > 0 && !this.#has(sender, more)) return false;
        this.#add(sender, more);
        own = bytes;
        return true;
      },
      end: () => {
        this.#add(sender, -own);
        own = 0;
      },
    };
  }

  /** A sender may have as much as is left for all others, so that no sender can take everything. */
  #has(sender: string, bytes: number): boolean {
    return (this.#bySender.get(sender) ?? 0) + bytes <= this.#maxBytes - this.#bytes;
  }

  #add(sender: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#bySender.get(sender) ?? 0) + bytes;
    if (own > 0) this.#bySender.set(sender, own);
    else this.#bySender.delete(sender);
  }
}

/** One body of a {@link BodiesUnderWay}. */
export interface BodyUnderWay {
  /** Counts the body with this size from now on. Returns false, and counts nothing, if that would exceed the limit. */
  reserve(bytes: number): boolean;
  /** Must be called once its request has ended. */
  end(): void;
}
