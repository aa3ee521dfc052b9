import Database from 'better-sqlite3';
import pg from 'pg';
import { startEmbedded } from '../support/databases/embedded-postgres.ts';
import type { Books } from './books.ts';

/** The database that the servers share, as the soak sees it: beside them, not through them. */
export interface SoakDatabase extends AsyncDisposable {
  /** For `--database`. */
  url: string;
  /** All of it as of one moment. @throws while the database does not answer. */
  books(): Promise<Books>;
  /** Ends connections of the servers, those in the middle of a transaction first; how many. */
  terminateConnections?(): Promise<number>;
  /** Stops the database at once and starts it again. */
  restart?(): Promise<void>;
}

const QUERIES: Record<keyof Books, string> = {
  instances: 'SELECT id, owner_ref, offer_id, region, status, spec, error FROM instances',
  volumes: 'SELECT id, owner_ref, status, deleted_at FROM volumes',
  attachments: 'SELECT volume_id, instance_id, state FROM attachments',
  claims: 'SELECT instance_id, offer_id, region FROM claims',
  work: 'SELECT resource_id, kind, lease_token, last_error FROM work',
};

type Row = Record<string, unknown>;

function toBooks(rows: Record<keyof Books, Row[]>): Books {
  const text = (value: unknown): string | null => (value == null ? null : String(value));
  return {
    instances: rows.instances.map((row) => {
      const spec = typeof row['spec'] === 'string' ? JSON.parse(row['spec']) : row['spec'];
      return {
        id: String(row['id']),
        ownerRef: String(row['owner_ref']),
        offerId: String(row['offer_id']),
        region: String(row['region']),
        status: String(row['status']),
        holdsStopped: spec.onStop === 'hold',
        error: text(row['error']),
      };
    }),
    volumes: rows.volumes.map((row) => ({
      id: String(row['id']),
      ownerRef: String(row['owner_ref']),
      status: String(row['status']),
      isDeleted: row['deleted_at'] !== null,
    })),
    attachments: rows.attachments.map((row) => ({
      volumeId: String(row['volume_id']),
      instanceId: String(row['instance_id']),
      state: String(row['state']),
    })),
    claims: rows.claims.map((row) => ({
      instanceId: String(row['instance_id']),
      offerId: String(row['offer_id']),
      region: String(row['region']),
    })),
    work: rows.work.map((row) => ({
      resourceId: String(row['resource_id']),
      kind: String(row['kind']),
      leaseToken: text(row['lease_token']),
      lastError: text(row['last_error']),
    })),
  };
}

/** One server's file. */
export function sqliteDatabase(path: string): SoakDatabase {
  return {
    url: `sqlite:${path}`,
    async books() {
      const db = new Database(path, { readonly: true });
      try {
        return db.transaction(() => {
          const read = (name: keyof Books): Row[] => db.prepare(QUERIES[name]).all() as Row[];
          return toBooks({
            instances: read('instances'),
            volumes: read('volumes'),
            attachments: read('attachments'),
            claims: read('claims'),
            work: read('work'),
          });
        })();
      } finally {
        db.close();
      }
    },
    async [Symbol.asyncDispose]() {},
  };
}

const APPLICATION = 'berth-soak';

/** A PostgreSQL that is there already, such as `postgres://user:password@127.0.0.1:5432/berth`, with an empty database. */
export function postgresDatabase(url: string): SoakDatabase {
  const connect = async <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ connectionString: url, application_name: APPLICATION });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  return {
    url,
    books: () =>
      connect(async (client) => {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
        const read = async (name: keyof Books): Promise<Row[]> => (await client.query(QUERIES[name])).rows;
        return toBooks({
          instances: await read('instances'),
          volumes: await read('volumes'),
          attachments: await read('attachments'),
          claims: await read('claims'),
          work: await read('work'),
        });
      }),
    terminateConnections: () => connect(terminateConnections),
    async [Symbol.asyncDispose]() {},
  };
}

const LOOKS_FOR_TRANSACTIONS = 200;

async function terminateConnections(client: pg.Client): Promise<number> {
  const kill = async (condition: string): Promise<number> => {
    const { rows } = await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name <> $1 AND ${condition}`,
      [APPLICATION],
    );
    return rows.length;
  };
  let count = 0;
  for (let look = 0; look < LOOKS_FOR_TRANSACTIONS && count < 3; look++)
    count += await kill("xact_start IS NOT NULL AND backend_type = 'client backend'");
  return count + (await kill("backend_type = 'client backend'"));
}

/** A PostgreSQL of this run's own. */
export async function embeddedPostgres(): Promise<SoakDatabase> {
  const { url, restart, stop } = await startEmbedded();
  return { ...postgresDatabase(url), restart, [Symbol.asyncDispose]: stop };
}
