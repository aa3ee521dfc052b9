import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { account, accountId, instance, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { ChangeWaits } from '../../orchestrator/changes/change-waits.ts';
import { listChanges } from '../../orchestrator/changes/list-changes.ts';
import type { ChangePosition, Store } from '../../orchestrator/model/store.ts';
import { openPostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;
let a: Store;
let b: Store;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
  const timing = { heartbeatMs: 50, staleAfterMs: 60_000 };
  [a, b] = await Promise.all([openPostgresStore(url, { timing }), openPostgresStore(url, { timing })]);
});
afterAll(async () => {
  await Promise.all([a.close(), b.close()]);
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await server.empty(url);
  await a.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.installation.put({ id: 'installation', platform: 'simulator' });
  });
});

const insert = (store: Store, id: string) => store.transact((tx) => tx.instances.insert(instance(id)));
const page = (after: ChangePosition | null, { store = a, limit = 100 } = {}) =>
  store.read.changes.page({ accountId, after, limit });
const end = async () => (await page(null)).next;

/** Starts a transaction that writes an instance, and returns the function that ends it. */
async function begin(store: Store, id: string) {
  const written = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  const committed = store.transact(async (tx) => {
    await tx.instances.insert(instance(id));
    // This read is answered only after the write was executed.
    await tx.instances.byId(id);
    written.resolve();
    await ending.promise;
  });
  committed.catch(() => undefined);
  await written.promise;
  return {
    async commit() {
      ending.resolve();
      await committed;
    },
    async rollBack() {
      ending.reject(new Error('no'));
      await committed.catch(() => undefined);
    },
  };
}

describe('the changes', () => {
  it('include a commit that began before others and ended after them', async () => {
    const start = await end();
    const early = await begin(a, 'early');
    await insert(b, 'late');
    const first = await page(start);
    expect(first.changes.map(({ id }) => id)).toEqual(['late']);
    expect((await page(first.next)).changes).toEqual([]);
    await early.commit();
    const second = await page(first.next);
    expect(second.changes.map(({ id }) => id)).toEqual(['early']);
    expect((await page(second.next)).changes).toEqual([]);
  });

  it('do not wait for an open transaction, nor list its rolled-back writes', async () => {
    const start = await end();
    const open = await begin(a, 'open');
    let after = start;
    for (const id of ['x', 'y', 'z']) {
      await insert(b, id);
      const { changes, next } = await page(after);
      expect(changes.map((change) => change.id)).toEqual([id]);
      after = next;
    }
    await open.rollBack();
    expect((await page(after)).changes).toEqual([]);
  });

  it('are all listed if pages are cut while transactions are open', async () => {
    const start = await end();
    const open = await begin(a, 'b-open');
    for (const id of ['a', 'c', 'd', 'e']) await insert(b, id);
    const listed: string[] = [];
    const first = await page(start, { limit: 2 });
    await open.commit();
    await insert(b, 'f');
    let { changes, next } = first;
    while (changes.length > 0) {
      listed.push(...changes.map(({ id }) => id));
      ({ changes, next } = await page(next, { limit: 2 }));
    }
    expect([...listed].sort()).toEqual(['a', 'b-open', 'c', 'd', 'e', 'f']);
  });

  it('are complete and never go backwards, whatever writers interleave [changes-interleaved]', async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `i-${index}`);
    for (const id of ids) await insert(a, id);
    let after = await end();
    const known = new Map<string, number>();
    let isWriting = true;
    const read = async (): Promise<void> => {
      const { changes, next } = await page(after, { store: b, limit: 5 });
      for (const { kind, id, version } of changes) {
        expect(version).toBeGreaterThanOrEqual(known.get(`${kind} ${id}`) ?? 0);
        known.set(`${kind} ${id}`, version);
      }
      after = next;
    };
    const reading = (async () => {
      while (isWriting) await read();
    })();
    const turns = (count: number) =>
      Array.from({ length: count }).reduce<Promise<void>>(
        (before) => before.then(() => new Promise((resolve) => setImmediate(resolve))),
        Promise.resolve(),
      );
    /** A writer holds its transactions open for different times, and rolls back every third one. */
    const writer = async (store: Store, seed: number): Promise<void> => {
      for (let round = 0; round < 40; round++) {
        const id = ids[(seed * 7 + round * 5) % ids.length] ?? '';
        await store
          .transact(async (tx) => {
            if (round % 4 === 1) await turns((seed * 3) % 11);
            const row = await tx.instances.byId(id);
            if (row === null) return;
            await tx.instances.update({ ...row, version: row.version + 1 });
            if (round % 10 === 0) await tx.volumes.insert(volume(`v-${seed}-${round}`));
            await turns((seed * round) % 23);
            if ((seed + round) % 3 === 0) throw new Error('taken back');
          })
          .catch((error: Error) => {
            if (error.message !== 'taken back') throw error;
          });
      }
    };
    await Promise.all([a, b, a, b, a, b].map((store, index) => writer(store, index + 1)));
    isWriting = false;
    await reading;
    for (let count = 0; count < 20; count++) await read();
    const rows = await server.query(
      `SELECT 'instance ' || id AS key, version FROM instances UNION ALL SELECT 'volume ' || id, version FROM volumes`,
      url,
    );
    expect(rows.filter(({ key, version }) => known.get(String(key)) !== version)).toEqual([]);
    expect(known.size).toBe(rows.length);
  });

  it('list a row that was restored from another server only once', async () => {
    await insert(a, 'restored');
    await server.query(`UPDATE instances SET changed_in = 4000000000000`, url);
    const start = await end();
    await insert(a, 'new');
    const { changes, next, isLost } = await page(start);
    expect([changes.map(({ id }) => id), isLost]).toEqual([['new'], false]);
    expect((await page(next)).changes).toEqual([]);
    expect((await page({ from: next.from + 1_000_000, afterId: '', open: [] })).isLost).toBe(true);
  });

  it('have another epoch after a dump was restored, and the same one for each server', async () => {
    const { epoch } = await page(null);
    expect((await page(null, { store: b })).epoch).toBe(epoch);
    await insert(a, 'x');
    expect((await page(null)).epoch).toBe(epoch);
    // `pg_restore` loads the rows like this: the same values, in another transaction.
    await server.query(
      `CREATE TABLE dump AS SELECT * FROM installation; DELETE FROM installation;
       INSERT INTO installation SELECT * FROM dump; DROP TABLE dump`,
      url,
    );
    const restored = (await page(null)).epoch;
    expect(restored).not.toBe(epoch);
    expect((await page(null, { store: b })).epoch).toBe(restored);
  });

  it('have another epoch in a copy of the database that a template made', async () => {
    const original = await server.createDatabase('orchestrator');
    const copy = await server.createDatabase();
    const epochIn = async (database: string) => {
      const store = await openPostgresStore(database);
      const { epoch } = await page(null, { store });
      await store.close();
      return epoch;
    };
    const epoch = await epochIn(original);
    const nameOf = (database: string) => new URL(database).pathname.slice(1);
    await server.query(`DROP DATABASE ${nameOf(copy)}`);
    await server.query(`CREATE DATABASE ${nameOf(copy)} TEMPLATE ${nameOf(original)}`);
    expect(await epochIn(copy)).not.toBe(epoch);
    expect(await epochIn(original)).toBe(epoch);
  });
});

it('a request that waits on one server is answered by a commit of another, also of a volume', async () => {
  const clock = new VirtualClock();
  const changeWaits = new ChangeWaits({ store: b, clock });
  const client = new AbortController().signal;
  const ask = (since?: string) =>
    listChanges({ store: b, clock, changeWaits }, accountId, { since, waitMs: 30_000, client });
  await until('the commit feed is live', () => b.isCommitFeedLive());
  const { cursor } = await ask();
  const first = ask(cursor);
  await insert(a, 'x');
  const { changes, cursor: next } = await first;
  expect(changes.map(({ id }) => id)).toEqual(['x']);
  const second = ask(next);
  await a.transact((tx) => tx.volumes.insert(volume('v')));
  expect((await second).changes).toMatchObject([{ kind: 'volume', id: 'v' }]);
  expect([changeWaits.size, clock.pendingTimers]).toEqual([0, 0]);
  changeWaits.close();
});
