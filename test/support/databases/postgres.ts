import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { marketplaceFormat, orchestratorFormat } from '../../../src/store/postgres/database-format.ts';
import { prepareDatabase } from '../../../src/store/postgres/open-database.ts';
import { type EmbeddedServer, startEmbedded } from './embedded-postgres.ts';

/** Databases of a server of ours, as the migrations of a program leave them. */
const templates = { orchestrator: orchestratorFormat, marketplace: marketplaceFormat };

/** Names where a run of tests has its one PostgreSQL started: see shared-postgres.ts. */
export const STARTER = 'BERTH_TEST_POSTGRES_STARTER';

/** A PostgreSQL server for tests; `await using` drops what was made on it. */
export interface PostgresServer extends AsyncDisposable {
  /**
   * Makes an empty database and returns its URL. A server of ours copies it from one that has the tables of `program`;
   * on another server they are yet to be made.
   */
  createDatabase(program?: keyof typeof templates): Promise<string>;
  /** Makes a copy of a database that has no connections, and returns its URL. */
  copy(url: string): Promise<string>;
  drop(url: string): Promise<void>;
  /** Takes every row out of Berth's tables, where there are any. */
  empty(url: string): Promise<void>;
  /** Asks as the superuser, in the database that `url` names or in one that is always there. */
  query(text: string, url?: string): Promise<Record<string, unknown>[]>;
}

/** The server that BERTH_TEST_POSTGRES names, the one that all files of this run share, or one of its own. */
export async function startPostgres(): Promise<PostgresServer> {
  const starter = process.env[STARTER];
  const given = process.env['BERTH_TEST_POSTGRES'];
  if (given) return useServer(given, { hasTemplates: false });
  if (starter === undefined) {
    const { url, stop } = await startWithTemplates();
    return useServer(url, { hasTemplates: true, stop });
  }
  const reply = await fetch(starter);
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return useServer(text, { hasTemplates: true });
}

/** A server whose databases are copied from `templates`: to migrate one takes four times as long as to copy it. */
export async function startWithTemplates(): Promise<EmbeddedServer> {
  const server = await startEmbedded();
  const { query } = useServer(server.url, { hasTemplates: false });
  for (const [name, format] of Object.entries(templates)) {
    await query(`CREATE DATABASE ${name}`);
    await prepareDatabase(databaseUrl(server.url, name), {}, format);
  }
  return server;
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

function useServer(
  serverUrl: string,
  { hasTemplates, stop }: { hasTemplates: boolean; stop?: () => Promise<void> },
): PostgresServer {
  const made = new Set<string>();
  /** By the URL of the database that they empty: a connection takes longer than what is asked of it. */
  const sweepers = new Map<string, Client>();
  const query = async (text: string, url = serverUrl): Promise<Record<string, unknown>[]> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };
  const copyOf = async (template: string): Promise<string> => {
    const name = `berth_test_${randomBytes(6).toString('hex')}`;
    // To copy the files takes less time than to log them, which PostgreSQL 14 does not know.
    const strategy = hasTemplates ? 'STRATEGY FILE_COPY' : '';
    await query(`CREATE DATABASE ${name} TEMPLATE ${template} ENCODING 'UTF8' ${strategy}`);
    made.add(name);
    return databaseUrl(serverUrl, name);
  };
  const nameOf = (url: string): string => new URL(url).pathname.slice(1);
  return {
    query,
    async empty(url) {
      let sweeper = sweepers.get(url);
      if (sweeper === undefined) {
        sweeper = new Client({ connectionString: url });
        // A test may take the connections of all away.
        sweeper.on('error', () => sweepers.delete(url));
        sweepers.set(url, sweeper);
        await sweeper.connect();
      }
      const { rows: tables } = await sweeper.query<{ name: string }>(
        "SELECT quote_ident(relname) AS name FROM pg_class WHERE relkind = 'r' AND relname NOT LIKE 'berth%schema' AND relnamespace = 'public'::regnamespace",
      );
      // The tables hold a few rows: to delete those takes a tenth of the time of TRUNCATE, which makes new files.
      const deletes = tables.map(({ name }) => `DELETE FROM ${name}`);
      await sweeper.query(['SET session_replication_role = replica', ...deletes].join('; '));
    },
    createDatabase: (program) => copyOf((hasTemplates && program) || 'template0'),
    copy: (url) => copyOf(nameOf(url)),
    async drop(url) {
      await query(`DROP DATABASE IF EXISTS ${nameOf(url)} WITH (FORCE)`);
      made.delete(nameOf(url));
    },
    async [Symbol.asyncDispose]() {
      for (const sweeper of sweepers.values()) await sweeper.end();
      for (const name of made) await query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await stop?.();
    },
  };
}
