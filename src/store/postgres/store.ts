import { sql } from 'drizzle-orm';
import type { CommitListener, Store } from '../../orchestrator/model/store.ts';
import type { Connection } from '../queries/connection.ts';
import { writeHistory } from '../queries/history.ts';
import { instancesByIds } from '../queries/instances.ts';
import { Changes, notifyListeners, readerOn, transactionOn } from '../queries/repositories.ts';
import { claimWork, nextWorkAt } from '../queries/work.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { postgres } from '../schema/postgres.ts';
import { skippingLocked, toConnection } from './connection.ts';
import { orchestratorFormat } from './database-format.ts';
import { fromPostgres } from './errors.ts';
import type { PostgresOptions } from './open-database.ts';
import { openSharedDatabase } from './shared-database.ts';

const tables = orchestratorTables(postgres);

/**
 * Opens the store for several replicas: see `openSharedDatabase`.
 * @throws {DatabaseRefused} if the database cannot be used as it is.
 */
export async function openPostgresStore(url: string, options: PostgresOptions = {}): Promise<Store> {
  const listeners = new Set<CommitListener>();
  const database = await openSharedDatabase(url, options, {
    format: orchestratorFormat,
    tables,
    withoutFeed: 'reads query the database',
    changed: async (ids) => {
      notifyListeners(listeners, await instancesByIds(outside, ids));
    },
    missed: () => {
      for (const listener of listeners) listener.commitsMissed?.();
    },
  });
  const { schema, statementPool } = database;
  const outside = toConnection(statementPool, tables);
  let closing: Promise<void> | undefined;
  const claiming: Connection = {
    ...toConnection(statementPool, tables, skippingLocked),
    onlyIf: sql.raw(`(SELECT version FROM ${schema.versionTable} LIMIT 1) = ${schema.version}`),
  };

  return {
    isShared: true,
    isCommitFeedLive: database.isCommitFeedLive,
    read: readerOn(outside, fromPostgres),
    transact: (body) =>
      database.transact(async (connection) => {
        const changes = new Changes();
        const value = await body(transactionOn(connection, changes));
        await writeHistory(connection, changes.history);
        return {
          value,
          announced: [...changes.instances.keys()],
          notify: () => notifyListeners(listeners, changes.instances.values(), changes),
        };
      }),
    claimWork: (claim) => guarded(claimWork(claiming, claim)),
    nextWorkAt: (platform) => guarded(nextWorkAt(outside, platform)),
    takeOverWork: async () => undefined,
    proveWrites: database.proveWrites,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => (closing ??= database.close()),
  };
}

async function guarded<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) => Promise.reject(fromPostgres(error)));
}
