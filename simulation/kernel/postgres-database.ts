import { rmSync } from 'node:fs';
import type { Store as MarketStore } from '../../src/marketplace/model/store.ts';
import type { Store as OrchestratorStore } from '../../src/orchestrator/model/store.ts';
import type { PostgresOptions } from '../../src/store/postgres/open-database.ts';
import { type PostgresServer, startPostgres } from '../../test/support/databases/postgres.ts';
import type { Scheduler } from '../../test/support/time/scheduler.ts';
import { makeFolder } from './database-file.ts';
import { interceptMethods } from './intercept-methods.ts';
import type { Beginning, DatabaseTemplate, SharedDatabase } from './shared-database.ts';
import { inRealTime, inVirtualTime } from './virtual-timers.ts';

type AnyStore = OrchestratorStore | MarketStore;

/** Either product's store, as far as it asks the database. */
interface AskingStore {
  read: object;
  transact<T>(body: (tx: object) => Promise<T>): Promise<T>;
  snapshot(body: (reader: object) => Promise<unknown>): Promise<unknown>;
}

type Open<Store> = (url: string, options: PostgresOptions) => Promise<Store>;

/** The connection for notifications is not checked: all servers of a world have one store. */
const timing = { heartbeatMs: 3_600_000, staleAfterMs: 7_200_000 };

/** A template on a PostgreSQL server, which `fill` fills once. */
export async function preparePostgres<Store extends AnyStore>(
  program: 'orchestrator' | 'marketplace',
  open: Open<Store>,
  fill: (store: Store) => Promise<void>,
): Promise<DatabaseTemplate<Store>> {
  const server = await startPostgres();
  const template = await server.createDatabase(program);
  const store = await open(template, { timing });
  await fill(store);
  await store.close();
  const folder = makeFolder();
  return {
    folder,
    take: async () => {
      const database = new PostgresDatabase(server, await server.copy(template), open);
      await database.open();
      return database;
    },
    close: async () => {
      rmSync(folder, { recursive: true, force: true });
      await server[Symbol.asyncDispose]();
    },
  };
}

/**
 * The real store on a PostgreSQL server, which loses nothing in a power cut. Virtual time stands still while the database is
 * asked, and it is asked one question after another, so that a run repeats.
 */
class PostgresDatabase<Store extends AnyStore> implements SharedDatabase<Store> {
  readonly #server: PostgresServer;
  readonly #open: Open<Store>;
  #url: string;
  #raw: Store | undefined;
  #beginning: Beginning<Store> | undefined;
  #store: Store | undefined;
  #copies: string[] = [];

  constructor(server: PostgresServer, url: string, open: Open<Store>) {
    this.#server = server;
    this.#url = url;
    this.#open = open;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('the world has not begun');
    return this.#store;
  }

  async open(): Promise<void> {
    this.#raw = await inRealTime(() => this.#open(this.#url, { timing }));
  }

  begin(beginning: Beginning<Store>): void {
    this.#beginning = beginning;
    if (this.#raw === undefined) throw new Error('the database is not open');
    this.#store = inOrder(this.#raw, beginning.scheduler);
    beginning.opened?.(this.#store);
  }

  async cutPower(): Promise<void> {
    await this.#moveTo(async () => this.#url);
  }

  async copy(): Promise<string> {
    let copy = '';
    await this.#moveTo(async () => {
      copy = await this.#server.copy(this.#url);
      this.#copies.push(copy);
      return this.#url;
    });
    return copy;
  }

  async goBack(copy: string): Promise<void> {
    await this.#moveTo(async () => {
      this.#copies.push(this.#url);
      return this.#server.copy(copy);
    });
  }

  async close(): Promise<void> {
    await inRealTime(async () => {
      await this.#raw?.close();
      for (const url of [this.#url, ...this.#copies]) await this.#server.drop(url);
    });
  }

  /** Only a database without connections can be copied. */
  async #moveTo(next: () => Promise<string>): Promise<void> {
    await inRealTime(async () => {
      await this.#raw?.close();
      this.#url = await next();
    });
    await this.open();
    if (this.#beginning !== undefined) this.begin(this.#beginning);
  }
}

/** The store, asked one question after another. A transaction begins when the last one has ended. */
function inOrder<Store extends AnyStore>(given: Store, scheduler: Scheduler): Store {
  const store = given as unknown as AskingStore;
  const asking = new Turns();
  const transactions = new Turns();
  const enter = async (): Promise<() => void> => {
    const release = scheduler.hold();
    const leave = await asking.enter();
    return () => {
      leave();
      release();
      scheduler.noteActivity();
    };
  };
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    const leave = await enter();
    return inRealTime(async () => question()).finally(leave);
  };
  const parts = <Parts extends object>(of: Parts): Parts =>
    // Signals are kept until the commit, and what was written is known here.
    interceptMethods(of, (part, name, call) =>
      part === 'signals' || name === 'hasWritten' ? call() : ask(call),
    );
  const transact: AskingStore['transact'] = async (body) => {
    const end = await transactions.enter();
    let leave = await enter();
    try {
      return await inRealTime(() =>
        store.transact(async (tx) => {
          leave();
          try {
            return await inVirtualTime(() => body(parts(tx)));
          } finally {
            leave = await enter();
          }
        }),
      );
    } finally {
      leave();
      end();
    }
  };
  const others = Object.entries(store).flatMap(([name, method]) => {
    if (ASKING.has(name)) return [[name, (...args: unknown[]) => ask(() => method(...args))]];
    return LISTENING.has(name) ? [[name, (...args: unknown[]) => method(...args.map(virtual))]] : [];
  });
  const snapshot: AskingStore['snapshot'] = (body) =>
    ask(() => store.snapshot((reader) => inVirtualTime(() => body(reader))));
  return { ...given, ...Object.fromEntries(others), read: parts(store.read), transact, snapshot };
}

/** A listener, or an object of listeners, that runs in virtual time. */
function virtual(listener: unknown): unknown {
  if (typeof listener === 'function')
    return (...args: unknown[]) => inVirtualTime(() => Reflect.apply(listener, undefined, args));
  if (typeof listener !== 'object' || listener === null) return listener;
  return Object.fromEntries(Object.entries(listener).map(([name, one]) => [name, virtual(one)]));
}

const LISTENING = new Set(['subscribe', 'watch', 'onWake']);
const ASKING = new Set(['claimWork', 'nextWorkAt', 'takeOverWork', 'proveWrites', 'countRequest']);

/** Lets callers in one after another, in the order in which they came. */
class Turns {
  #last: Promise<void> = Promise.resolve();

  async enter(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    return resolve;
  }
}
