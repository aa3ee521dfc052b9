import type Database from 'better-sqlite3';
import type { InstanceRecord } from '../../orchestrator/instances/instance-record.ts';
import type { CommitListener, Reader, Store, Transaction } from '../../orchestrator/ports/store.ts';
import { claimReader, claimWriter } from './claims.ts';
import { credentialReader, credentialWriter } from './credentials.ts';
import { type Db, fromSqlite, toDb } from './db.ts';
import { idempotencyWriter } from './idempotency.ts';
import { instanceReader, instanceWriter } from './instances.ts';
import {
  installationReader,
  installationWriter,
  lossReader,
  lossWriter,
  markReader,
  markWriter,
} from './marks.ts';
import { type OpenOptions, openDatabase, openReader } from './open-database.ts';
import { volumeReader, volumeWriter } from './volumes.ts';
import { claimWork, endAbandonedLeases, nextWorkAt, workReader, workWriter } from './work.ts';

/** What one transaction has written, to be told after its commit. */
interface Changes {
  instances: Map<string, InstanceRecord>;
  work: boolean;
}

/**
 * The embedded store: one SQLite file, written by one process. Transactions run one after another on one
 * connection; reads outside of them go through a second connection, which sees only what is committed.
 *
 * @throws {DatabaseRefused} if the file cannot be used as it is.
 */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  const writer = openDatabase(path, options);
  const reader = openReader(path);
  const db = toDb(writer);
  const listeners = new Set<CommitListener>();
  let lastTransaction: Promise<unknown> = Promise.resolve();

  /** Waits for the transactions before it, so that none runs inside another's. */
  function inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = lastTransaction.then(body);
    lastTransaction = turn.catch(() => undefined);
    return turn;
  }

  function tell(changes: Changes): void {
    const records = [...changes.instances.values()];
    for (const listener of listeners) {
      if (records.length > 0) listener.instancesChanged?.(records);
      if (changes.work) listener.workChanged?.();
    }
  }

  return {
    isShared: false,
    hearsCommits: () => true,
    read: rejectUnavailable(readerOf(toDb(reader))),
    transact: (body) =>
      inTurn(async () => {
        const changes: Changes = { instances: new Map(), work: false };
        const result = await commitOrRollBack(writer, () => body(transactionOn(db, changes)));
        tell(changes);
        return result;
      }),
    claimWork: (claim) => inTurn(async () => guarded(() => claimWork(db, claim))),
    nextWorkAt: async () => guarded(() => nextWorkAt(toDb(reader))),
    endAbandonedLeases: () => inTurn(async () => guarded(() => endAbandonedLeases(db))),
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

function guarded<T>(body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw fromSqlite(error);
  }
}

function readerOf(db: Db): Reader {
  return {
    instances: instanceReader(db),
    volumes: volumeReader(db),
    claims: claimReader(db),
    work: workReader(db),
    credentials: credentialReader(db),
    marks: markReader(db),
    losses: lossReader(db),
    installation: installationReader(db),
  };
}

function transactionOn(db: Db, changes: Changes): Transaction {
  return {
    instances: instanceWriter(db, (record) => changes.instances.set(record.id, record)),
    volumes: volumeWriter(db),
    claims: claimWriter(db),
    work: workWriter(db, () => {
      changes.work = true;
    }),
    credentials: credentialWriter(db),
    marks: markWriter(db),
    losses: lossWriter(db),
    installation: installationWriter(db),
    idempotency: idempotencyWriter(db),
  };
}

/** Wraps every method of every part of a reader so that a storage failure has its one name. */
function rejectUnavailable(reader: Reader): Reader {
  const wrapPart = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, name, receiver) {
        const method: unknown = Reflect.get(target, name, receiver);
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) =>
          Promise.resolve(Reflect.apply(method, target, args)).catch((error) =>
            Promise.reject(fromSqlite(error)),
          );
      },
    });
  return {
    instances: wrapPart(reader.instances),
    volumes: wrapPart(reader.volumes),
    claims: wrapPart(reader.claims),
    work: wrapPart(reader.work),
    credentials: wrapPart(reader.credentials),
    marks: wrapPart(reader.marks),
    losses: wrapPart(reader.losses),
    installation: wrapPart(reader.installation),
  };
}
