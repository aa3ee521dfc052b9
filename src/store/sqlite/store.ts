import type { CommitListener, Store } from '../../orchestrator/model/store.ts';
import { writeHistory } from '../queries/history.ts';
import { Changes, notifyListeners, readerOn, transactionOn } from '../queries/repositories.ts';
import { claimWork, nextWorkAt, takeOverWork } from '../queries/work.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { sqlite } from '../schema/sqlite.ts';
import { toConnection } from './connection.ts';
import { EmbeddedDatabase } from './embedded.ts';
import { MEMORY, MemoryDatabase, type StoreDatabase } from './memory.ts';
import type { OpenOptions } from './open-options.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

const tables = orchestratorTables(sqlite);

/**
 * Opens the embedded store: see `EmbeddedDatabase`. With the path `:memory:` it has no file, and ends with the process.
 * @throws {DatabaseRefused} if the file cannot be used as it is.
 */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  return storeOn(
    path === MEMORY
      ? new MemoryDatabase(orchestratorFormat)
      : new EmbeddedDatabase(path, options, orchestratorFormat),
  );
}

/** Opens a store in memory that can be copied. `image` is the content of another one. */
export function openMemoryStore(image?: Buffer): Store & Pick<MemoryDatabase, 'image'> {
  const database = new MemoryDatabase(orchestratorFormat, image);
  return { ...storeOn(database), image: () => database.image() };
}

function storeOn(database: StoreDatabase): Store {
  const connection = toConnection(database.writer, tables);
  const readConnection = toConnection(database.reader, tables);
  const listeners = new Set<CommitListener>();
  database.onForeignCommit(() => {
    for (const listener of listeners) listener.commitsMissed?.();
  });

  return {
    isShared: false,
    isCommitFeedLive: () => true,
    read: readerOn(readConnection, database.toCoreError),
    transact: async (body) => {
      const changes = new Changes();
      return database.transact(
        async () => {
          const value = await body(transactionOn(connection, changes));
          await writeHistory(connection, changes.history);
          return value;
        },
        () => notifyListeners(listeners, changes.instances.values(), changes),
      );
    },
    claimWork: (claim) => database.transact(() => claimWork(connection, claim)),
    nextWorkAt: (platform) =>
      nextWorkAt(readConnection, platform).catch((error) => Promise.reject(database.toCoreError(error))),
    takeOverWork: (now) => database.transact(() => takeOverWork(connection, now)),
    proveWrites: () => database.proveWrites(),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => database.close(),
  };
}
