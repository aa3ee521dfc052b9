import { inspect } from 'node:util';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startEmbedded } from '../../../test/support/databases/embedded-postgres.ts';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { account, claim, dueWork, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import { type Store, StoreUnavailable } from '../../orchestrator/model/store.ts';
import { createPool } from './pool.ts';
import { openPostgresStore } from './store.ts';
import { OutcomeUnknown } from './transaction.ts';
import { type Break, startWire } from './wire.fixture.ts';

const SECRET = 'the-canary-in-a-parameter';
let server: PostgresServer;
let url: string;
let wire: Awaited<ReturnType<typeof startWire>>;
let store: Store;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  await server.empty(url);
  wire = await startWire(url);
  store = await openPostgresStore(wire.url);
  await store.transact((tx) => tx.credentials.insertAccount(account));
});
afterEach(async () => {
  await store.close();
  await wire.cut();
});

const killAll = () =>
  server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'berth%' AND datname = current_database()`,
    url,
  );

describe('a connection that breaks at the commit [connection-breaks-at-commit]', () => {
  it.each<[string, Break, number]>([
    ['after the server committed', 'after', 1],
    ['before the server received it', 'before', 0],
  ])('%s: its outcome is unknown, and it is not done again', async (_what, when, found) => {
    wire.breakAt('berth_end', when);
    let runs = 0;
    const done = store.transact(async (tx) => {
      runs++;
      await tx.instances.insert(instance('a'));
    });
    await expect(done).rejects.toThrow(OutcomeUnknown);
    expect(runs).toBe(1);
    await until('it has ended', async () => (await store.read.instances.list({})).length === found);
  });
});

describe('a crash of a process of PostgreSQL [postgres-crashes]', () => {
  /** Crashes the server: unflushed data is lost, and transaction ids are assigned again. */
  async function crash(databaseUrl: string): Promise<void> {
    const connected = async () => {
      const client = new Client({ connectionString: databaseUrl });
      client.on('error', () => undefined);
      await client.connect();
      return client;
    };
    const operator = await connected();
    const { rows } = await operator.query('SELECT pg_backend_pid() AS pid');
    process.kill(rows[0].pid, 'SIGKILL');
    await until('it has recovered', () =>
      connected().then(
        (client) => client.end().then(() => true),
        () => false,
      ),
    );
  }

  it('leaves the outcome of a commit unknown', async () => {
    const crashing = await startEmbedded();
    const operator = new Client({ connectionString: crashing.url });
    operator.on('error', () => undefined);
    await operator.connect();
    await operator.query("ALTER SYSTEM SET wal_writer_delay = '10s'");
    await operator.query('SELECT pg_reload_conf()');
    const way = await startWire(crashing.url);
    const crashed = await openPostgresStore(way.url);
    await crashed.transact((tx) => tx.credentials.insertAccount(account));
    way.breakAt('berth_end', 'held');
    const lost = crashed.transact((tx) => tx.instances.insert(instance('lost')));
    const outcome = expect(lost).rejects.toThrow(OutcomeUnknown);
    await until('it is held', () => way.isHeld());
    await crash(crashing.url);
    const others = new Client({ connectionString: crashing.url });
    await others.connect();
    for (let count = 0; count < 20; count++) await others.query('SELECT pg_current_xact_id()');
    way.breakHeld();
    await outcome;
    expect(await crashed.read.instances.byId('lost')).toBeNull();
    await others.end();
    await crashed.close();
    await way.cut();
    await crashing.stop();
  });
});

it('a commit with an unknown outcome is announced when it arrives, and earlier cached state is dropped', async () => {
  await store.transact((tx) => tx.instances.insert(instance('a')));
  await until('the commit feed is live', () => store.isCommitFeedLive());
  const events: string[] = [];
  store.subscribe({
    instancesChanged: (records) => events.push(...records.map(({ id, version }) => `${id} ${version}`)),
    commitsMissed: () => events.push('missed'),
  });
  wire.breakAt('berth_end', 'hidden');
  const unknown = store.transact((tx) => tx.instances.update(instance('a', { version: 2 })));
  await expect(unknown).rejects.toThrow(StoreUnavailable);
  expect(events).toContain('missed');
  wire.sayHidden();
  await until('the commit is announced', () => events.includes('a 2'));
});

describe('every connection killed', () => {
  it('in a transaction makes the store unavailable; the next one is served', async () => {
    const broken = store.transact(async (tx) => {
      await tx.instances.insert(instance('a'));
      await killAll();
      await tx.instances.insert(instance('b'));
    });
    await expect(broken).rejects.toThrow(StoreUnavailable);
    await store.transact((tx) => tx.instances.insert(instance('c')));
    expect((await store.read.instances.list({})).map(({ id }) => id)).toEqual(['c']);
  });

  it('while idle breaks nothing: the next request is served', async () => {
    await store.read.instances.list({});
    await killAll();
    await until('the store answers', () =>
      store.read.instances.list({}).then(
        () => true,
        () => false,
      ),
    );
    await store.transact((tx) => tx.instances.insert(instance('a')));
    await until('the commit feed is live', () => store.isCommitFeedLive());
  });

  it('in a read, a claim or a search for work makes the store unavailable', async () => {
    await wire.cut();
    for (const ask of [
      () => store.read.instances.byId('a'),
      () => store.transact((tx) => tx.instances.byId('a')),
      () => store.claimWork(claim),
      () => store.nextWorkAt('default'),
    ])
      await expect(ask()).rejects.toMatchObject({
        name: 'StoreUnavailable',
        cause: { name: 'PostgresFailure', isConnectionLost: true },
      });
  });
});

describe('a text with a NUL, which PostgreSQL cannot hold,', () => {
  it('matches no id, region or name', async () => {
    expect(await store.read.instances.byId('\0')).toBeNull();
    expect(await store.read.instances.list({ region: 'a\0' })).toEqual([]);
    expect(await store.read.credentials.accountByName('\0')).toBeNull();
    expect(await store.transact((tx) => tx.instances.byId('\0'))).toBeNull();
    expect(await store.transact((tx) => tx.volumes.byId('\0'))).toBeNull();
  });

  it('is not written as another text', async () => {
    const written = store.transact((tx) => tx.instances.insert(instance('a\0')));
    await expect(written).rejects.toThrow('a NUL');
    expect(await store.read.instances.list({})).toEqual([]);
  });
});

describe('a transaction', () => {
  it('that waits too long for a free connection gets an unavailable store [connection-pool-exhausted]', async () => {
    const open = Promise.withResolvers<void>();
    const holding = Array.from({ length: 10 }, () => store.transact(() => open.promise));
    const late = store.transact(async () => 'served');
    await expect(late).rejects.toThrow(StoreUnavailable);
    expect(await store.read.instances.list({})).toEqual([]);
    open.resolve();
    // Those that waited for too long in their transaction have lost it.
    await Promise.allSettled(holding);
    expect(await store.transact(async () => 'served')).toBe('served');
  });

  it('with a failed statement is not committed, even if the error was caught', async () => {
    const swallowing = store.transact(async (tx) => {
      await tx.marks.put('restored_from', 1);
      await tx.storageClaims
        .take({ volumeId: 'nobody', region: 'here', gb: 1, capacityGb: null })
        .catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow('a statement of the transaction failed');
    expect(await store.read.marks.get('restored_from')).toBeNull();
  });

  it('that violates a constraint fails with that error, after some retries', async () => {
    await store.transact((tx) => tx.instances.insert(instance('a')));
    let runs = 0;
    const twice = store.transact(async (tx) => {
      runs++;
      await tx.instances.insert(instance('a'));
    });
    await expect(twice).rejects.toMatchObject({ name: 'PostgresFailure', code: '23505' });
    expect(runs).toBe(3);
  });
});

it('no error contains the values of a statement', async () => {
  const said: string[] = [];
  const collect = (error: unknown) => void said.push(inspect(error, { depth: 20 }));
  const secret = { ...instance('s'), error: SECRET, ownerRef: SECRET };
  await store.transact((tx) => tx.instances.insert({ ...secret, accountId: SECRET })).catch(collect);
  await store.transact((tx) => tx.instances.insert({ ...secret, version: SECRET as never })).catch(collect);
  wire.breakAt(SECRET, 'before');
  await store.transact((tx) => tx.instances.insert(secret)).catch(collect);
  await wire.cut();
  await store.read.credentials.accountByName(SECRET).catch(collect);
  expect(said).toHaveLength(4);
  for (const text of said) expect(text).not.toContain(SECRET);
});

it('a claim takes only unlocked rows, and waits for none', async () => {
  await store.transact((tx) => tx.work.put({ resourceId: 'held', ...dueWork }));
  await store.transact((tx) => tx.work.put({ resourceId: 'free', ...dueWork }));
  await store.transact(async (tx) => {
    await tx.work.of('held');
    expect((await store.claimWork(claim)).map(({ resourceId }) => resourceId)).toEqual(['free']);
  });
});

it('every connection has durable commits and limited waits', async () => {
  const pool = createPool(url, 1);
  const settings = ['synchronous_commit', 'transaction_isolation', 'statement_timeout', 'lock_timeout'];
  const shown = settings.concat('idle_in_transaction_session_timeout', 'application_name');
  const columns = shown.map((name) => `current_setting('${name}') AS ${name}`).join();
  const { rows } = await pool.query(`SELECT ${columns}`);
  await pool.end();
  expect(rows[0]).toEqual({
    synchronous_commit: 'on',
    transaction_isolation: 'read committed',
    statement_timeout: '10s',
    lock_timeout: '8s',
    idle_in_transaction_session_timeout: '5s',
    application_name: 'berth',
  });
});
