import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { oversold } from './books.ts';
import type { Market } from './buyers.ts';
import type { SoakClient } from './client.ts';
import type { SoakDatabase } from './database.ts';
import { insistently, sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Possession } from './possession.ts';
import type { Platform, Replica } from './processes.ts';

interface Parts {
  market: Market;
  client: SoakClient;
  database: SoakDatabase;
  platform: Platform;
  catalog: Catalog;
  journal: Journal;
}

const POLL_PAUSE_MS = 15;
const BOOKS_PAUSE_MS = 300;
/** What was answered 404 is read for so long, in case it comes back. */
const READ_GONE_FOR_MS = 4_000;

/** Reads, all the time, what was bought, and how much is claimed. */
export class Watchers {
  readonly #parts: Parts;
  #isOver = false;
  readonly #proofs: Promise<void>[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#proofs);
  }

  /** Polls everything at one replica, over and over. */
  async poll(replica: Replica): Promise<void> {
    const { market, client, journal } = this.#parts;
    while (!this.#isOver) {
      const now = Date.now();
      const watched = market.possessions.filter(
        ({ id, goneAt = now }) => id !== undefined && now - goneAt < READ_GONE_FOR_MS,
      );
      for (const possession of watched) {
        if (this.#isOver) return;
        const reply = await client.send(replica, { method: 'GET', path: possession.path });
        journal.operation('poll');
        if (reply !== undefined && possession.read(reply)) this.#proofs.push(this.#proveGone(possession));
        await sleep(reply === undefined ? 10 * POLL_PAUSE_MS : POLL_PAUSE_MS);
      }
      await sleep(POLL_PAUSE_MS);
    }
  }

  /** Holds the claims against the catalog. */
  async count(): Promise<void> {
    const { database, catalog, journal } = this.#parts;
    while (!this.#isOver) {
      const books = await database.books().catch(() => undefined);
      for (const finding of books === undefined ? [] : oversold(books, catalog)) journal.lose(finding);
      await sleep(BOOKS_PAUSE_MS);
    }
  }

  /** O: 404 is taken for DESTROYED and ends the bill: then the row says so too, and the platform has nothing of it. */
  async #proveGone({ id, kind }: Possession): Promise<void> {
    const { database, platform, journal } = this.#parts;
    const { instances, volumes } = await insistently(() => database.books());
    const truth = await insistently(() => platform.truth());
    const row =
      kind === 'instances'
        ? instances.find((instance) => instance.id === id)
        : volumes.find((volume) => volume.id === id);
    const isGone = row !== undefined && ('isDeleted' in row ? row.isDeleted : row.status === 'DESTROYED');
    const left = [...truth.machines, ...truth.volumes].find(({ ref }) => ref === row?.ownerRef);
    if (!isGone || left !== undefined)
      journal.lose(`${id} is answered 404 and is not gone`, { row: row ?? null, left: left ?? null });
  }
}
