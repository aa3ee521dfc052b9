import type { SyncContext, SyncDeps } from './context.ts';

/** The pause between two catalog reads varies by up to a quarter. */
const JITTER = 0.25;

/** Reads a provider's catalog. Concurrent callers share one read. */
export class CatalogReading {
  readonly #deps: Pick<SyncDeps, 'options' | 'random'>;
  readonly #stopped = Promise.withResolvers<void>();
  #reading: Promise<void> | undefined;

  constructor(deps: Pick<SyncDeps, 'options' | 'random'>) {
    this.#deps = deps;
  }

  /** Returns the pause until the next read, in milliseconds. */
  async run(context: SyncContext): Promise<number> {
    // A provider that hangs must not delay the stop. A later result is not written, because the lease is released.
    await Promise.race([this.#read(context), this.#stopped.promise]);
    const { options, random } = this.#deps;
    return Math.round(options.polling.catalogMs * (1 - JITTER + 2 * JITTER * random.next()));
  }

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
