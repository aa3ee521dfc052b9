import type { SyncContext, SyncDeps } from './context.ts';

/** Between two readings of the catalog: the interval, more or less a quarter of it. */
const JITTER = 0.25;

/** Reads what a provider sells, once for all that ask at the same time. */
export class CatalogReading {
  readonly #deps: Pick<SyncDeps, 'options' | 'random'>;
  readonly #stopped = Promise.withResolvers<void>();
  /** The one that is under way. */
  #reading: Promise<void> | undefined;

  constructor(deps: Pick<SyncDeps, 'options' | 'random'>) {
    this.#deps = deps;
  }

  /** Returns the pause until the next one in milliseconds. */
  async run(context: SyncContext): Promise<number> {
    // A provider that hangs delays no end: what is read after it is not written, since the lease is released.
    await Promise.race([this.#read(context), this.#stopped.promise]);
    const { options, random } = this.#deps;
    return Math.round(options.polling.catalogMs * (1 - JITTER + 2 * JITTER * random.next()));
  }

  /** Waits for none any more. */
  stop(): void {
    this.#stopped.resolve();
  }

  #read({ store, provider, call, refreshCatalog }: SyncContext): Promise<void> {
    this.#reading ??= refreshCatalog(provider.id, store, call).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }
}
