import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { assertUsable, prepareDatabase } from './open-database.ts';
import { openPostgresStore } from './store.ts';

const PASSWORD = 'the-canary-password';
let server: PostgresServer;
let url: string;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  url = await server.createDatabase();
});

const nameOf = (of: string): string => new URL(of).pathname.slice(1);
const tables = async (): Promise<unknown[]> =>
  (
    await server.query(
      "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
      url,
    )
  ).map(({ relname }) => relname);

describe('migrations', () => {
  const first = { version: 1, sql: 'CREATE TABLE runs (n INTEGER); INSERT INTO runs VALUES (1)' };
  const second = { version: 2, sql: 'INSERT INTO runs VALUES (2)' };
  const runs = async () => (await server.query('SELECT n FROM runs', url)).map(({ n }) => n);

  it('run once when several servers start at once, on nothing and on an older version', async () => {
    await Promise.all(Array.from({ length: 5 }, () => prepareDatabase(url, { migrations: [first] })));
    expect(await runs()).toEqual([1]);
    await Promise.all(Array.from({ length: 5 }, () => prepareDatabase(url, { migrations: [first, second] })));
    expect(await runs()).toEqual([1, 2]);
  });

  it('leave the database as it was when one of them fails', async () => {
    const broken = { version: 2, sql: 'INSERT INTO runs VALUES (2); INSERT INTO nowhere VALUES (1)' };
    await expect(prepareDatabase(url, { migrations: [first, broken] })).rejects.toThrow();
    expect(await tables()).toEqual([]);
    await prepareDatabase(url, { migrations: [first, second] });
    expect(await runs()).toEqual([1, 2]);
  });

  it('are not limited by statement timeouts of the user or the database', async () => {
    await server.query(`ALTER DATABASE ${nameOf(url)} SET statement_timeout = '1min'`);
    const limit = "current_setting('statement_timeout')::int";
    await prepareDatabase(url, {
      migrations: [{ version: 1, sql: `CREATE TABLE runs AS SELECT ${limit} AS n` }],
    });
    expect(await runs()).toEqual([0]);
  });

  it('are not run by a command: it refuses an older database, and leaves it to the servers', async () => {
    await prepareDatabase(url, { migrations: [first] });
    const command = prepareDatabase(url, { migrations: [first, second], mayMigrate: false });
    await expect(command).rejects.toThrow(/is older \(version 1\) than this program \(version 2\): start/);
    expect(await runs()).toEqual([1]);
  });

  it('ask before anything is written, and write nothing if declined', async () => {
    const beforeWriting = (): never => {
      throw new DatabaseRefused('not now');
    };
    await expect(prepareDatabase(url, { beforeWriting })).rejects.toThrow('not now');
    expect(await tables()).toEqual([]);
  });
});

describe('refused in one sentence, and left as it is:', () => {
  /** Returns a changed copy of the URL. */
  const changed = (change: (url: URL) => void): string => {
    const other = new URL(url);
    change(other);
    return other.href;
  };

  /** Creates a user that owns nothing. */
  async function stranger(grants: string): Promise<string> {
    const name = `stranger_${Math.random().toString(36).slice(2)}`;
    await server.query(
      `CREATE USER ${name} PASSWORD '${PASSWORD}'; ${grants.replaceAll('$USER', name)}`,
      url,
    );
    onTestFinished(async () => void (await server.query(`DROP OWNED BY ${name}; DROP USER ${name}`, url)));
    return changed((other) => {
      other.username = name;
      other.password = PASSWORD;
    });
  }

  const cases: [string, RegExp, () => Promise<string>][] = [
    [
      'a server that is not there',
      /cannot be reached \(connect ECONNREFUSED .*\): check that it runs, and the address/,
      async () => changed((other) => (other.port = '1')),
    ],
    [
      'an unknown host',
      /cannot be reached \(getaddrinfo .*\): check that it runs, and the address/,
      async () => changed((other) => (other.hostname = 'nowhere.invalid')),
    ],
    [
      'a wrong password',
      /refuses the login \(password authentication failed for user "postgres"\): check the user and the password/,
      async () => changed((other) => (other.password = PASSWORD)),
    ],
    [
      'no password',
      /asks for a password, but --database has none: write postgres:/,
      async () => changed((other) => (other.password = '')),
    ],
    [
      'a database that is not there',
      /There is no database .*\/nowhere on its server: create it with `createdb`/,
      async () => changed((other) => (other.pathname = '/nowhere')),
    ],
    [
      'a user who may make no tables',
      /lacks a privilege \(permission denied for schema public\): grant it/,
      () => stranger(''),
    ],
    [
      'a user who may not write the tables',
      /lacks a privilege \(DELETE on table accounts\): grant it/,
      async () => {
        await prepareDatabase(url);
        return stranger('GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO $USER');
      },
    ],
    [
      'a newer version',
      /is newer \(version 1000\) than this program \(version \d+\): run the Berth that wrote it/,
      async () => {
        await prepareDatabase(url);
        await server.query('UPDATE berth_schema SET version = 1000', url);
        return url;
      },
    ],
    [
      'the tables of another program',
      /has tables of another program \(customers\): give --database a separate database/,
      async () => {
        await server.query('CREATE TABLE customers (id INTEGER)', url);
        return url;
      },
    ],
    [
      'a standby',
      /is read-only: give --database the primary server/,
      () =>
        stranger(
          'ALTER USER $USER SET default_transaction_read_only = on; GRANT CREATE ON SCHEMA public TO $USER',
        ),
    ],
    [
      'a database that cannot hold every text',
      /has the encoding LATIN1, which cannot store all text: create one with `createdb --encoding UTF8/,
      async () => {
        const name = `${nameOf(url)}_latin`;
        await server.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
        onTestFinished(async () => void (await server.query(`DROP DATABASE ${name}`)));
        return changed((other) => (other.pathname = `/${name}`));
      },
    ],
  ];

  it.each(cases)('%s', async (_what, sentence, prepare) => {
    const other = await prepare();
    const before = await tables();
    const refused: unknown = await prepareDatabase(other).catch((error) => error);
    expect(refused).toBeInstanceOf(DatabaseRefused);
    const { message } = refused as DatabaseRefused;
    expect(message).toMatch(sentence);
    expect(message).not.toContain(PASSWORD);
    expect(message.split('\n')).toHaveLength(1);
    expect(await tables()).toEqual(before);
  });

  it.each([
    [{ number: 130_014, version: '13.14' }, /is PostgreSQL 13\.14: Berth needs 14 or later/],
    [{ schema: null }, /has no usage right on any schema of its search_path: grant it/],
  ])('a server that reports %o', (facts, sentence) => {
    const usable = { number: 140_000, version: '14.0', encoding: 'UTF8', schema: 'public' };
    expect(() => assertUsable(usable, 'here')).not.toThrow();
    expect(() => assertUsable({ ...usable, ...facts }, 'here')).toThrow(sentence);
  });

  it('but not a sound database', async () => {
    await prepareDatabase(url);
    const served = await stranger(
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $USER',
    );
    const store = await openPostgresStore(served);
    await store.proveWrites();
    await store.close();
    expect(await server.query('SELECT * FROM berth_schema', url)).toHaveLength(1);
  });

  it('an empty database, where a command needs one that is in use', async () => {
    await expect(prepareDatabase(url, { mayMigrate: false })).rejects.toThrow(/start `berth serve` once/);
    expect(await tables()).toEqual([]);
  });
});
