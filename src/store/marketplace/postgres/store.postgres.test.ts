import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../../test/support/databases/postgres.ts';
import {
  deployment,
  now,
  posting,
  providerId,
  runningDeployment,
  seed,
  segment,
  teamId,
  userId,
} from '../../../../test/support/rows/marketplace-rows.ts';
import { until } from '../../../../test/support/time/until.ts';
import { defaultOptions } from '../../../marketplace/model/options.ts';
import { type Store, StoreUnavailable, type Transaction } from '../../../marketplace/model/store.ts';
import { admitLoss } from '../../../marketplace/providers/loss-cap.ts';
import type { Clock } from '../../../ports/clock.ts';
import { DatabaseRefused } from '../../database-refused.ts';
import { reusable } from '../../postgres/reusable.fixture.ts';
import { openPostgresStore } from '../../postgres/store.ts';
import { describeMarketplaceStore } from '../store.suite.ts';
import { openMarketplacePostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;
/** Two servers. Tests that need what a server keeps in memory open their own. */
const shared = reusable(() => openMarketplacePostgresStore(url));
const second = reusable(() => openMarketplacePostgresStore(url));

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('marketplace');
});
afterAll(async () => {
  await shared.close();
  await second.close();
  await server[Symbol.asyncDispose]();
});

describeMarketplaceStore("the marketplace's PostgreSQL store", {
  setup: async () => {
    await server.empty(url);
    return shared.get();
  },
  teardown: async () => undefined,
});

it('two servers that end denied deployments of a provider never exceed the cap together', async () => {
  await withTwo(async (...stores) => {
    const deps = { clock: { now: () => now } as Clock, options: defaultOptions };
    const ids = Array.from({ length: 24 }, (_, index) => `dep-${index}`);
    await stores[0].transact(async (tx) => {
      for (const id of ids) await tx.deployments.insert(runningDeployment({ id, providerName: `bm-${id}` }));
    });
    const admissions = await Promise.all(
      ids.map((subjectId, index) =>
        (stores[index % 2] as Store).transact(async (tx) => {
          await tx.losses.lock(providerId);
          return admitLoss(deps, tx, { subjectId, kind: 'deployment', providerId });
        }),
      ),
    );
    expect(admissions.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(5);
    expect(admissions.filter(({ alarm }) => alarm !== null)).toHaveLength(1);
    expect(await stores[0].read.losses.held(providerId)).toHaveLength(19);
  });
});

const LOCKED = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
const untilWaiting = () =>
  until('a session waits for a lock', async () => (await server.query(LOCKED, url)).length > 0);

/** Runs `body` with two servers on one empty database. */
async function withTwo(body: (one: Store, other: Store) => Promise<void>): Promise<void> {
  await server.empty(url);
  const one = await shared.get();
  await seed(one);
  await body(one, await second.get());
}

describe('two servers on one database', () => {
  it('post each due slice once if both read the segment first, and both succeed [slices-posted-once-by-two-servers]', () =>
    withTwo(async (one, other) => {
      await one.transact((tx) => tx.ledger.insertSegment(segment()));
      const post = (store: Store) =>
        store.transact(async (tx) => {
          const found = await tx.ledger.segmentById('seg-1');
          if (found === null || found.postedUntil >= now + 1) return 'nothing';
          await tx.ledger.post([posting(5, now + 1, { id: 't' })]);
          return 'posted';
        });
      expect((await Promise.all([post(one), post(other), post(one)])).sort()).toEqual([
        'nothing',
        'nothing',
        'posted',
      ]);
    }));

  it('find the segment that the other server opened during the wait for the previous one', () =>
    withTwo(async (one, other) => {
      await one.transact((tx) => tx.ledger.insertSegment(segment()));
      let waiting: Promise<unknown> = Promise.resolve();
      await one.transact(async (tx) => {
        const found = await tx.ledger.openSegmentOf('deployment', 'dep-1');
        if (found === null) throw new Error('expected a segment');
        waiting = other.transact((theirs) => theirs.ledger.openSegmentOf('deployment', 'dep-1'));
        await untilWaiting();
        await tx.ledger.updateSegment({ ...found, endedAt: now + 1 });
        await tx.ledger.insertSegment(segment({ id: 'seg-2', startedAt: now + 1 }));
      });
      expect(await waiting).toMatchObject({ id: 'seg-2' });
    }));

  it('check a membership at the same time, whatever locks the other holds', () =>
    withTwo(async (one, other) => {
      const member = await one.transact(async (tx) => {
        await tx.teams.member(teamId, userId);
        return other.transact((its) => its.teams.member(teamId, userId));
      });
      expect(member?.userId).toBe(userId);
    }));

  it('do not pass on an expired lease before the transaction that claimed it ends', () =>
    withTwo(async (one, other) => {
      const claim = (store: Store, holder: string, at: number) =>
        store.transact((tx) => tx.leases.claim(['job'], holder, at, 10));
      const [lease] = await claim(one, 'one', now);
      if (lease === undefined) throw new Error('nobody has it');
      const order: string[] = [];
      let claiming: Promise<unknown> | undefined;
      await one.transact(async (tx) => {
        expect(await tx.leases.isHeld(lease)).toBe(true);
        // Two transactions of the holder do not block each other.
        expect(await one.transact((its) => its.leases.isHeld(lease))).toBe(true);
        claiming = claim(other, 'other', now + 20).then(() => order.push('claimed'));
        await untilWaiting();
        order.push('written');
      });
      await claiming;
      expect(order).toEqual(['written', 'claimed']);
      expect(await one.transact((tx) => tx.leases.isHeld(lease))).toBe(false);
    }));

  it('notify each other of a wake, with its subject, and of a changed row', () =>
    withTwo(async (one, other) => {
      const heard: string[] = [];
      other.onWake((signal) => heard.push(`${signal?.kind} ${signal?.providerId} ${signal?.subjectId}`));
      other.watch('dep-1', () => heard.push('changed dep-1'));
      const isHeard = async (what: string, write: (tx: Transaction) => Promise<unknown>) => {
        // What is written before the other listens is not heard.
        await one.transact(write);
        return heard.includes(what);
      };
      await until('the wake is heard', () =>
        isHeard(`wake ${providerId} dep-1`, (tx) => tx.signals.wake(providerId, 'dep-1')),
      );
      heard.length = 0;
      await one.transact((tx) => tx.deployments.insert(runningDeployment()));
      await until('the change is heard', async () => heard.includes('changed dep-1'));
    }));
});

describe('the ledger', () => {
  it('cannot be changed or deleted, and shows rows written past the store', () =>
    withTwo(async (store) => {
      await store.transact(async (tx) => {
        await tx.ledger.insertSegment(segment());
        await tx.ledger.post([posting(5, now + 1)]);
      });
      for (const table of ['ledger_transactions', 'ledger_entries', 'slices']) {
        const column = table === 'ledger_transactions' ? 'at' : 'amount_micro_usd';
        const refused = 'the ledger is append-only';
        await expect(server.query(`UPDATE ${table} SET ${column} = 1`, url)).rejects.toThrow(refused);
        await expect(server.query(`DELETE FROM ${table}`, url)).rejects.toThrow(refused);
      }
      // A slice without its transaction.
      const orphan = server.query("INSERT INTO slices VALUES ('seg-1', 9, 5, 'none')", url);
      await expect(orphan).rejects.toThrow(/foreign key/);
      await server.query("INSERT INTO ledger_entries VALUES ('txn-1', 'cash', 1)", url);
      expect((await store.read.ledger.malformed(9)).map(({ id }) => id)).toContain('txn-1');
    }));
});

describe('request counts', () => {
  it('are forgotten after their window', async () => {
    await server.empty(url);
    const store = await openMarketplacePostgresStore(url);
    const count = (name: string, at: number) => store.countRequest({ name, now: at, lengthMs: 100 });
    await count('old', now);
    await count('new', now + 60_000);
    expect(await server.query('SELECT name FROM request_counts', url)).toEqual([{ name: 'new' }]);
    await store.close();
  });
});

describe('opening', () => {
  it("refuses the other program's database by its name, in both directions, and leaves it as it is", async () => {
    const orchestrators = await server.createDatabase('orchestrator');
    await (await openPostgresStore(orchestrators)).close();
    const refused: unknown = await openMarketplacePostgresStore(orchestrators).catch((error) => error);
    expect(refused).toBeInstanceOf(DatabaseRefused);
    expect((refused as Error).message).toMatch(
      /belongs to `berth serve`: give `berth marketplace` its own database with --database/,
    );
    await expect(openPostgresStore(url)).rejects.toThrow(
      /belongs to `berth marketplace`: give `berth serve` its own database/,
    );
  });

  it('creates nothing if it may not migrate, and names the command that does', async () => {
    const empty = await server.createDatabase();
    await expect(openMarketplacePostgresStore(empty, { mayMigrate: false })).rejects.toThrow(
      /start `berth marketplace` once/,
    );
    await (await openMarketplacePostgresStore(empty)).close();
    await (await openMarketplacePostgresStore(empty, { mayMigrate: false })).close();
  });

  it("reads the database's time at once and repeatedly", async () => {
    const times: number[] = [];
    const thirdRead = Promise.withResolvers<void>();
    const store = await openMarketplacePostgresStore(url, {
      timing: { heartbeatMs: 1, staleAfterMs: 3_000 },
      hearTime: async (ask) => {
        times.push(await ask());
        if (times.length === 3) thirdRead.resolve();
      },
    });
    expect(times[0]).toBeGreaterThan(Date.UTC(2020));
    await thirdRead.promise;
    await store.close();
  });

  it('fails to open, and leaves no connection, if the time cannot be read', async () => {
    const opening = openMarketplacePostgresStore(url, {
      hearTime: () => Promise.reject(new Error('no time')),
    });
    await expect(opening).rejects.toThrow('no time');
  });
});

it('the store reports that it is unavailable when it is closed', async () => {
  const store = await openMarketplacePostgresStore(url);
  await store.close();
  await expect(store.read.deployments.byId('a')).rejects.toThrow(StoreUnavailable);
  await expect(store.transact((tx) => tx.deployments.insert(deployment()))).rejects.toThrow(StoreUnavailable);
  await expect(store.snapshot((read) => read.users.list())).rejects.toThrow(StoreUnavailable);
  await expect(store.countRequest({ name: 'a', now, lengthMs: 1 })).rejects.toThrow(StoreUnavailable);
});
