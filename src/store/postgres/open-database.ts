import type { Client } from 'pg';
import type { Log } from '../../ports/log.ts';
import { DatabaseRefused, refusedOwner, refusedVersion } from '../database-refused.ts';
import { type Migration, readMigrations } from '../migrations.ts';
import { BerthClient } from './client.ts';
import type { FeedTiming } from './commit-feed.ts';
import { type DatabaseFormat, type KnownSchema, orchestratorFormat, ownerOf } from './database-format.ts';
import { asFailure, refusalOf, toAddress } from './errors.ts';
import { connectionOptions } from './pool.ts';

/**
 * The oldest usable version. `pg_current_xact_id`, by which a commit's outcome is looked up, exists since version 13,
 * which is no longer maintained.
 */
const OLDEST_SERVER = 140_000;
/** "Brth": the advisory lock for migrations. */
const MIGRATION_LOCK = 0x42727468;
/** How long to wait for another server's migration, in milliseconds. */
const MIGRATION_LOCK_MS = 60_000;
/** A migration may take long, so the user's statement timeout is disabled. Only waits for locks are limited. */
const PREPARE = `SET lock_timeout = ${MIGRATION_LOCK_MS}; SET statement_timeout = 0; SET synchronous_commit = on`;

export interface OpenOptions {
  migrations?: readonly Migration[];
  /**
   * Called once the database is checked or found empty, before anything is written. If it throws, nothing is changed.
   */
  beforeWriting?: () => void;
  /** Whether an empty or older database is migrated (default) or refused. */
  mayMigrate?: boolean;
}

export interface PostgresOptions extends OpenOptions {
  timing?: FeedTiming;
  /** Logs when commits of other servers are no longer received, and when they are again. */
  log?: Pick<Log, 'info' | 'warn'>;
  /** Reads the database's time, once before the store opens and then at each heartbeat. See `CommitFeed`. */
  hearTime?: (ask: () => Promise<number>) => Promise<void>;
}

/**
 * Checks the database at `url` and migrates it to the newest version: all migrations in one transaction, one process at
 * a time, while no server writes.
 * @throws {DatabaseRefused} if it is unreachable, unusable, another program's or newer; nothing was changed
 */
export async function prepareDatabase(
  url: string,
  { migrations: given, beforeWriting = () => undefined, mayMigrate = true }: OpenOptions = {},
  format: DatabaseFormat = orchestratorFormat,
): Promise<KnownSchema> {
  const { command, versionTable } = format;
  const migrations = given ?? readMigrations(format.migrations);
  const newest = migrations.at(-1)?.version ?? 0;
  return onChecked(url, newest, format, async (client, version) => {
    if (version === 0 && !mayMigrate)
      throw new DatabaseRefused(
        `The database ${toAddress(url)} does not contain Berth's tables yet: start \`${command}\` once, or give --database.`,
      );
    if (version < newest && !mayMigrate) throw refusedVersion(toAddress(url), version, newest, command);
    beforeWriting();
    if (version < newest) await migrate(client, url, migrations, format);
    await checkPrivileges(client, url);
    return { versionTable, version: newest };
  });
}

/**
 * Runs the missing migrations and rolls them back. Returns the current version of the database.
 * @throws {DatabaseRefused} if a server would refuse to start, or a migration fails; nothing was changed
 */
export async function tryMigrations(
  url: string,
  format: DatabaseFormat,
  migrations: readonly Migration[],
): Promise<number> {
  return onChecked(url, migrations.at(-1)?.version ?? 0, format, async (client, version) => {
    if (version > 0) await migrate(client, url, migrations, format, 'ROLLBACK');
    return version;
  });
}

/** Runs `body` on a connection to a usable database, with its version; 0: it is empty. @throws {DatabaseRefused} */
async function onChecked<T>(
  url: string,
  newest: number,
  format: DatabaseFormat,
  body: (client: Client, version: number) => Promise<T>,
): Promise<T> {
  const client = new BerthClient({ ...connectionOptions(url), query_timeout: 0 });
  client.on('error', () => undefined);
  try {
    await asFailure(client.connect());
    await asFailure(client.query(PREPARE));
    await checkServer(client, url);
    return await body(client, await checkVersion(client, url, newest, format));
  } catch (error) {
    throw refusalOf(error, url);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Facts about a server and the database. */
export interface ServerFacts {
  /** Such as 180003. */
  number: number;
  version: string;
  encoding: string;
  /** The schema of the tables. Null: the user may not use any. */
  schema: string | null;
}

async function checkServer(client: Client, url: string): Promise<void> {
  const facts = await oneRow(
    client,
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
       pg_encoding_to_char(encoding) AS encoding, current_schema() AS schema
     FROM pg_database WHERE datname = current_database()`,
  );
  assertUsable(facts as unknown as ServerFacts, toAddress(url));
}

/** @throws {DatabaseRefused} */
export function assertUsable({ number, version, encoding, schema }: ServerFacts, address: string): void {
  if (number < OLDEST_SERVER)
    throw new DatabaseRefused(
      `The server of the database ${address} is PostgreSQL ${version}: Berth needs 14 or later.`,
    );
  if (encoding !== 'UTF8')
    throw new DatabaseRefused(
      `The database ${address} has the encoding ${encoding}, which cannot store all text: create one with \`createdb --encoding UTF8 --template template0\`.`,
    );
  if (schema === null)
    throw new DatabaseRefused(
      `The user of the database ${address} has no usage right on any schema of its search_path: grant it, or set the search_path.`,
    );
}

/** Returns the version of the database, 0 if it is empty. */
async function checkVersion(
  client: Client,
  url: string,
  newest: number,
  { command, versionTable }: DatabaseFormat,
): Promise<number> {
  const { own, foreign, kin } = await oneRow(
    client,
    `SELECT to_regclass(quote_ident(current_schema()) || '.${versionTable}') IS NOT NULL AS own,
       (SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
         AND relname IN ('berth_schema', 'berth_marketplace_schema') AND relname <> '${versionTable}') AS kin,
       (SELECT min(relname) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
         AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
         AND objid = pg_class.oid AND deptype = 'e')) AS foreign`,
  );
  if (own !== true) {
    const owner = ownerOf(kin);
    if (owner !== undefined) throw refusedOwner(toAddress(url), owner, command);
    if (foreign === null) return 0;
    throw new DatabaseRefused(
      `The database ${toAddress(url)} has tables of another program (${foreign}): give --database a separate database.`,
    );
  }
  const version = Number((await oneRow(client, `SELECT version FROM ${versionTable}`))['version']);
  if (version > newest) throw refusedVersion(toAddress(url), version, newest, command);
  return version;
}

/** If several versions of Berth start at once, the older ones are refused. @throws {DatabaseRefused} */
async function migrate(
  client: Client,
  url: string,
  migrations: readonly Migration[],
  { command, versionTable }: DatabaseFormat,
  end: 'COMMIT' | 'ROLLBACK' = 'COMMIT',
): Promise<void> {
  const run = (text: string) => asFailure(client.query(text));
  await run(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  try {
    await run(`CREATE TABLE IF NOT EXISTS ${versionTable} (version INTEGER NOT NULL)`);
    // Waits for running write transactions, each of which has read the table, and blocks new ones.
    await run(`LOCK TABLE ${versionTable} IN ACCESS EXCLUSIVE MODE`);
    const { rows } = await run(`SELECT version FROM ${versionTable}`);
    const version: number = rows[0]?.version ?? 0;
    const newest = migrations.at(-1)?.version ?? 0;
    if (version > newest) throw refusedVersion(toAddress(url), version, newest, command);
    for (const migration of migrations) if (migration.version > version) await run(migration.sql);
    if (version < newest)
      await run(`DELETE FROM ${versionTable}; INSERT INTO ${versionTable} VALUES (${newest})`);
    await run(end);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** Checks that the server's user may write the tables, which may belong to another user. */
async function checkPrivileges(client: Client, url: string): Promise<void> {
  const { rows } = await asFailure(
    client.query(
      `SELECT relname, privilege FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
       WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
         AND NOT has_table_privilege(pg_class.oid, privilege) ORDER BY relname LIMIT 1`,
    ),
  );
  if (rows[0] !== undefined)
    throw new DatabaseRefused(
      `The user of the database ${toAddress(url)} lacks a privilege (${rows[0].privilege} on table ${rows[0].relname}): grant it, or make the user the database's owner.`,
    );
}

async function oneRow(client: Client, text: string): Promise<Record<string, unknown>> {
  const { rows } = await asFailure(client.query(text));
  return rows[0] ?? {};
}
