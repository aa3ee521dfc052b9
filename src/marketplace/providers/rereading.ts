import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';
import type { StoredCatalog } from './stored-catalog.ts';

/** How often what other processes wrote is read. */
const REREAD_MS = 3_000;

interface RereadingDeps {
  store: Pick<Store, 'read'>;
  clock: Clock;
  log: Log;
  /** By provider. */
  catalogs: ReadonlyMap<string, StoredCatalog>;
}

/** Brings what the database has of the catalogs into memory: all their versions each time, and those that changed. */
export class Rereading {
  readonly #deps: RereadingDeps;
  /** One at a time, so that no older row is shown after a newer one. */
  #last: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isFailing = false;
  #isStopped = false;

  constructor(deps: RereadingDeps) {
    this.#deps = deps;
  }

  once(): Promise<void> {
    const round = this.#last.then(() => this.#read());
    this.#last = round.catch(() => undefined);
    return round;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimer(REREAD_MS, () => void this.#again());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#last;
  }

  async #again(): Promise<void> {
    const { log } = this.#deps;
    try {
      await this.once();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error({ err: error }, 'the catalogs cannot be read from the database');
      this.#isFailing = true;
    }
    this.start();
  }

  async #read(): Promise<void> {
    const {
      store: { read },
      catalogs,
    } = this.#deps;
    for (const { providerId, version, readAt } of await read.catalogs.versions()) {
      const catalog = catalogs.get(providerId);
      if (catalog?.version === version) catalog.confirm(readAt);
      else if (catalog !== undefined) {
        const record = await read.catalogs.byProvider(providerId);
        if (record !== null) catalog.show(record);
      }
    }
  }
}
