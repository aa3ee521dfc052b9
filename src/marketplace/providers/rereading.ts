import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';
import type { StoredCatalog } from './stored-catalog.ts';

/** How often changes by other processes are read. */
const REREAD_MS = 3_000;

interface RereadingDeps {
  store: Pick<Store, 'read'>;
  clock: Clock;
  log: Log;
  catalogs: ReadonlyMap<string, StoredCatalog>;
}

/** Loads catalogs from the database into memory: first all versions, then those that have changed. */
export class Rereading {
  readonly #deps: RereadingDeps;
  /** Rounds run one at a time, so that an older row never replaces a newer one. */
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
