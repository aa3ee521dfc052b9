import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { Client } from 'pg';
import { isPostgres, sqlitePath } from '../../src/config/server-schema.ts';

/** Writes to a database so far, counted from an arbitrary moment. */
export interface Written {
  /** Write transactions. */
  transactions: number;
  /** To PostgreSQL's log, or to SQLite's files, including checkpoints. */
  bytes: number;
}

export interface WriteMeter {
  read(): Promise<Written>;
  close(): Promise<void>;
}

/** Reads without asking the server, whose process id is `pid`. */
export async function writeMeter(database: string, pid: number): Promise<WriteMeter> {
  return isPostgres(database) ? postgresMeter(database) : sqliteMeter(sqlitePath(database), pid);
}

async function postgresMeter(url: string): Promise<WriteMeter> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    read: async () => {
      const { rows } = await client.query<{ transactions: string; bytes: string }>(
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS transactions, pg_current_wal_insert_lsn() - '0/0' AS bytes",
      );
      return { transactions: Number(rows[0]?.transactions), bytes: Number(rows[0]?.bytes) };
    },
    close: () => client.end(),
  };
}

/** The write transaction counter in the header of the WAL index. */
const CHANGES_AT = 8;

function sqliteMeter(path: string, pid: number): WriteMeter {
  const index = openSync(`${path}-shm`, 'r');
  return {
    read: async () => {
      const header = Buffer.alloc(4);
      readSync(index, header, 0, header.length, CHANGES_AT);
      const [, bytes = 'NaN'] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
      return { transactions: header.readUInt32LE(), bytes: Number(bytes) };
    },
    close: async () => closeSync(index),
  };
}
