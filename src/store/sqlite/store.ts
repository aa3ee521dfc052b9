import { realpathSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { CommitListener, Store } from '../../orchestrator/ports/store.ts';
import { Changes, readerOn, tellOf, transactionOn } from '../queries/parts.ts';
import { claimWork, endAbandonedLeases, nextWorkAt } from '../queries/work.ts';
import { toConnection } from './connection.ts';
import { FileIdentity } from './file-identity.ts';
import { type OpenOptions, openDatabase, openReader } from './open-database.ts';
import { fromSqlite } from './sqlite-error.ts';

/**
 * The embedded store: one SQLite file, served by one process. Transactions run one after another on one
 * connection; reads outside of them go through a second connection, which sees only what is committed.
 *
 * @throws {DatabaseRefused} if the file cannot be used as it is.
 */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  const writer = openDatabase(path, options);
  const reader = openReader(path);
  // The journal is there from the first read on.
  reader.prepare('SELECT count(*) FROM sqlite_schema').get();
  const file = new FileIdentity(realpathSync(path));
  const connection = toConnection(writer);
  const readConnection = toConnection(reader);
  const listeners = new Set<CommitListener>();
  let lastTransaction: Promise<unknown> = Promise.resolve();

  /** Waits for the transactions before it, so that none runs inside another's. */
  function inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = lastTransaction.then(body);
    lastTransaction = turn.catch(() => undefined);
    return turn;
  }

  return {
    isShared: false,
    hearsCommits: () => true,
    read: readerOn(readConnection, fromSqlite),
    transact: (body) =>
      inTurn(async () => {
        const changes = new Changes();
        file.assertInPlace();
        const result = await commitOrRollBack(writer, () => body(transactionOn(connection, changes)));
        tellOf(listeners, changes.instances.values(), changes.work);
        return result;
      }),
    claimWork: (claim) =>
      inTurn(async () => {
        file.assertInPlace();
        return guarded(claimWork(connection, claim));
      }),
    nextWorkAt: () => guarded(nextWorkAt(readConnection)),
    endAbandonedLeases: () => inTurn(() => guarded(endAbandonedLeases(connection))),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () =>
      inTurn(async () => {
        reader.close();
        writer.close();
      }),
  };
}

async function commitOrRollBack<T>(connection: Database.Database, body: () => Promise<T>): Promise<T> {
  try {
    connection.exec('BEGIN IMMEDIATE');
    const result = await body();
    connection.exec('COMMIT');
    return result;
  } catch (error) {
    if (connection.open && connection.inTransaction) connection.exec('ROLLBACK');
    throw fromSqlite(error);
  }
}

async function guarded<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) => Promise.reject(fromSqlite(error)));
}
