import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import {
  account,
  accountId,
  claim,
  dueWork,
  instance,
  now,
} from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import { ensureAccess } from '../../orchestrator/accounts/accounts.ts';
import { createOnce } from '../../orchestrator/accounts/quotas.ts';
import { PolledReads } from '../../orchestrator/instances/polled-reads.ts';
import type { Store, Transaction } from '../../orchestrator/model/store.ts';
import { ensureInstallation } from '../../orchestrator/reconciliation/installation.ts';
import { systemClock, systemRandom } from '../../runtime/system.ts';
import { FEED_NAME } from './commit-feed.ts';
import type { PostgresOptions } from './open-database.ts';
import { openPostgresStore } from './store.ts';
import { startWire } from './wire.fixture.ts';

const timing = { heartbeatMs: 50, staleAfterMs: 60_000 };
let server: PostgresServer;
let url: string;
let a: Store;
let b: Store;
/** Those that a test opens beside them. */
let opened: Store[];

async function open(options: PostgresOptions, to = url): Promise<Store> {
  const store = await openPostgresStore(to, { timing, ...options });
  opened.push(store);
  return store;
}

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
  [a, b] = await Promise.all([openPostgresStore(url, { timing }), openPostgresStore(url, { timing })]);
});
afterAll(async () => {
  await Promise.all([a.close(), b.close()]);
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await server.empty(url);
  opened = [];
  await a.transact((tx) => tx.credentials.insertAccount(account));
});
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
});

const WAITING = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Records the notifications of a store in order. */
function follow(store: Store): string[] {
  const events: string[] = [];
  store.subscribe({
    instancesChanged: (records) => events.push(...records.map(({ id, status }) => `${id} ${status}`)),
    commitsMissed: () => events.push('missed'),
  });
  return events;
}

const isCurrent = async (...listening: Store[]): Promise<void> =>
  until('every commit feed is live', () => listening.every((store) => store.isCommitFeedLive()));

const insert = (store: Store, id: string) => store.transact((tx) => tx.instances.insert(instance(id)));

describe('a replica is notified of', () => {
  it('commits of another replica, after the commit, and not of rollbacks', async () => {
    await isCurrent(b);
    const events = follow(b);
    await a
      .transact(async (tx) => {
        await tx.instances.insert(instance('rolled-back'));
        throw new Error('no');
      })
      .catch(() => undefined);
    await insert(a, 'x');
    await a.transact((tx) => tx.instances.update(instance('x', { status: 'ONLINE', version: 2 })));
    await until('b is notified of both', () => events.includes('x ONLINE'));
    expect(events.filter((words) => !words.startsWith('x '))).toEqual([]);
  });

  it('its own commits once', async () => {
    await isCurrent(a, b);
    const events = follow(a);
    await insert(a, 'own');
    await insert(b, 'other');
    await until('a is notified of the other', () => events.includes('other PROVISIONING'));
    expect(events).toEqual(['own PROVISIONING', 'other PROVISIONING']);
  });

  it('its own commit whose answer stalls, as the others do [own-commit-stalls]', async () => {
    await using wire = await startWire(url);
    const far = await open({}, wire.url);
    await insert(far, 'x');
    const reads = [a, far].map((store) => new PolledReads(store));
    await isCurrent(a, far);
    const shown = async () => {
      const replies = await Promise.all(reads.map((read) => read.get(accountId, 'x')));
      return replies.map(({ body }) => (JSON.parse(body) as { status: string }).status);
    };
    expect(await shown()).toEqual(['PROVISIONING', 'PROVISIONING']);
    wire.breakAt('berth_end', 'stalled');
    let isAnswered = false;
    const committing = far
      .transact((tx) => tx.instances.update(instance('x', { status: 'ONLINE', version: 2 })))
      .then(() => {
        isAnswered = true;
      });
    await until('both show it', async () => (await shown()).every((status) => status === 'ONLINE'));
    expect([isAnswered, a.isCommitFeedLive(), far.isCommitFeedLive()]).toEqual([false, true, true]);
    wire.answerStalled();
    await committing;
    expect(await shown()).toEqual(['ONLINE', 'ONLINE']);
    for (const read of reads) read.close();
    await far.close();
  });

  it('more instances than one notification holds', async () => {
    await isCurrent(b);
    const events = follow(b);
    const ids = Array.from({ length: 250 }, (_, index) => `inst-${'0'.repeat(29)}${index}`);
    await a.transact(async (tx) => {
      for (const id of ids) await tx.instances.insert(instance(id));
    });
    await until('b is notified of all', () => events.length >= ids.length);
    expect(new Set(events).size).toBe(ids.length);
  });

  it('missed commits when its connection broke, and of the following commits', async () => {
    await isCurrent(b);
    const events = follow(b);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${FEED_NAME}' AND datname = current_database()`,
      url,
    );
    await until('b reports missed commits', () => events.includes('missed'));
    await insert(a, 'x');
    await until('b is notified again', () => events.includes('x PROVISIONING'));
  });

  it('nothing from the moment when its connection broke, and not from the next heartbeat on [feed-cut]', async () => {
    const warnings: object[] = [];
    const log = { warn: (fields: object) => void warnings.push(fields), info: () => undefined };
    const far = await open({ log, timing: { heartbeatMs: 3_600_000, staleAfterMs: 3_600_000 } });
    await isCurrent(far);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${FEED_NAME}' AND datname = current_database()`,
      url,
    );
    await until('the feed counts as down', () => !far.isCommitFeedLive());
    await until('it logs a warning', () => warnings.length > 0);
    expect(warnings).toEqual([{ reason: expect.stringMatching(/terminating connection/) }]);
    await isCurrent(far);
  });

  it('a notification that it cannot read', async () => {
    await isCurrent(b);
    const events = follow(b);
    await server.query(`NOTIFY berth_commits, 'of a later version'`, url);
    await until('b reports missed commits', () => events.includes('missed'));
  });

  it('nothing on a silent connection, and reports that until notifications arrive again', async () => {
    await using wire = await startWire(url);
    const far = await open({ timing: { heartbeatMs: 20, staleAfterMs: 200 } }, wire.url);
    await isCurrent(far);
    const events = follow(far);
    wire.silence(true);
    await until('the feed counts as down', () => !far.isCommitFeedLive());
    await insert(a, 'x');
    wire.silence(false);
    await isCurrent(far);
    expect(events).toContain('missed');
    await far.close();
  });

  it('nothing behind a pooler that drops LISTEN, and reports the reason and the recovery', async () => {
    await using wire = await startWire(url);
    wire.unsay('LISTEN berth_commits');
    const logged: string[] = [];
    const log = {
      warn: (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`),
      info: (_fields: object, message: string) => void logged.push(message),
    };
    const far = await open({ log, timing: { heartbeatMs: 20, staleAfterMs: 200 } }, wire.url);
    await until('it logs a warning', () => logged.length > 0);
    expect(far.isCommitFeedLive()).toBe(false);
    wire.unsay('');
    await isCurrent(far);
    expect(logged).toEqual([
      expect.stringMatching(/do not arrive.*without a connection pooler/),
      'notifications of other servers arrive again',
    ]);
    await far.close();
  });
});

describe('two replicas', () => {
  it('create resources for an account concurrently, and it is closed after them', async () => {
    const order: string[] = [];
    const closings: Promise<void>[] = [];
    await a.transact(async ({ accountUse, credentials }) => {
      await accountUse.keepOpen(accountId);
      // The lock is sent without waiting for it. This read is answered after it.
      await credentials.accountById(accountId);
      await b.transact((beside) => beside.accountUse.keepOpen(accountId));
      order.push('made beside');
      closings.push(
        b.transact(async (closing) => {
          await closing.accountUse.lockToClose(accountId);
          await closing.credentials.accountById(accountId);
          order.push('closed');
        }),
      );
      await until('it waits', async () => (await server.query(WAITING, url)).length > 0);
      order.push('made');
    });
    await Promise.all(closings);
    expect(order).toEqual(['made beside', 'made', 'closed']);
  });

  it('share the due work, and no row goes to both', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `i${index}`);
    await a.transact(async (tx) => {
      for (const resourceId of ids) await tx.work.put({ resourceId, ...dueWork });
    });
    const claims = [a, b, a, b, a, b].map((store) => store.claimWork({ ...claim, limit: 10 }));
    const claimed = (await Promise.all(claims)).flat().map(({ resourceId }) => resourceId);
    expect(claimed.length).toBeLessThanOrEqual(ids.length);
    expect(new Set(claimed).size).toBe(claimed.length);
    const rest = await b.claimWork({ ...claim, limit: 100 });
    expect([...claimed, ...rest.map(({ resourceId }) => resourceId)].sort()).toEqual([...ids].sort());
  });

  it('never claim more than they ask for, however many rows are due', async () => {
    await a.transact(async (tx) => {
      for (let row = 0; row < 30; row++) await tx.work.put({ resourceId: `i${row}`, ...dueWork });
    });
    expect(await a.claimWork({ ...claim, limit: 3 })).toHaveLength(3);
  });

  it('give M units to M of N creates at once [no-overselling-two-replicas]', async () => {
    const creates = Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? a : b)).map((store, index) =>
      store.transact(async (tx) => {
        await tx.instances.insert(instance(`i${index}`));
        const isTaken = await take(tx, `i${index}`, 7);
        if (!isTaken) throw new Error('sold out');
      }),
    );
    const settled = await Promise.allSettled(creates);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
    expect(await a.read.claims.use()).toEqual([{ offerId: 'offer', region: 'here', claimed: 7 }]);
    expect(await b.read.instances.list({})).toHaveLength(7);
  });

  it('make one instance of one Idempotency-Key, also of the last unit', async () => {
    const asked = { accountId, operation: 'createInstance', request: {}, key: 'k' } as const;
    const create = (store: Store, id: string) =>
      store.transact((tx) =>
        createOnce(tx, asked, tx.instances.byId, async () => {
          await tx.instances.insert(instance(id));
          if (!(await take(tx, id, 1))) throw new Error('sold out');
          return instance(id);
        }),
      );
    const made = await Promise.all(Array.from({ length: 12 }, (_, n) => create(n % 2 ? a : b, `i${n}`)));
    expect(new Set(made.map(({ record }) => record.id)).size).toBe(1);
    expect(made.filter(({ isReplay }) => !isReplay)).toHaveLength(1);
  });

  it('both end well when each waits for the row of the other [deadlock-retried]', async () => {
    await insert(a, 'x');
    await insert(a, 'y');
    const both = Promise.withResolvers<void>();
    let waiting = 0;
    let runs = 0;
    const touch = (store: Store, first: string, second: string) =>
      store.transact(async (tx) => {
        runs++;
        await tx.instances.byId(first);
        if (++waiting === 2) both.resolve();
        await both.promise;
        await tx.instances.byId(second);
        await tx.marks.put('restored_from', runs);
      });
    await Promise.all([touch(a, 'x', 'y'), touch(b, 'y', 'x')]);
    expect(runs).toBe(3);
  });

  it('agree on a mark that both would set', async () => {
    const mark = (store: Store, at: number, meanwhile: () => void = () => undefined) =>
      store.transact(async (tx) => {
        const known = await tx.marks.get('platform_down_since');
        if (known !== null) return known;
        meanwhile();
        // Gives the other transaction time to read, if it may.
        for (let read = 0; read < 20; read++) await tx.instances.list({});
        await tx.marks.put('platform_down_since', at);
        return at;
      });
    let other: Promise<number> | undefined;
    await mark(a, 1, () => {
      other = mark(b, 2);
    });
    expect(await other).toBe(1);
  });

  it('count losses one after the other', async () => {
    for (const id of ['x', 'y', 'z']) await insert(a, id);
    const lose = (store: Store, instanceId: string) =>
      store.transact(async (tx) => {
        if ((await tx.losses.countSince(0, { platform: 'default' })) >= 1) return false;
        await tx.losses.add({ instanceId, at: now });
        return true;
      });
    const lost = await Promise.all([lose(a, 'x'), lose(b, 'y'), lose(a, 'z')]);
    expect(lost.filter(Boolean)).toHaveLength(1);
  });

  it('agree on the installation, the account and the key', async () => {
    await server.query('DELETE FROM accounts', url);
    const parts = { clock: systemClock, random: systemRandom };
    const starts = [a, b, a, b].map((store) => ensureAccess({ store, ...parts }, undefined));
    const ways = await Promise.all(starts);
    expect(new Set(ways.map(({ accountId: id }) => id)).size).toBe(1);
    expect(ways.filter(({ apiKey }) => apiKey !== null)).toHaveLength(1);
    const ids = await Promise.all(
      [a, b, a].map((store) =>
        ensureInstallation({ store, random: systemRandom }, new Map([['default', 'simulator']])),
      ),
    );
    expect(new Set(ids.map(({ id }) => id)).size).toBe(1);
  });
});

function take(tx: Transaction, instanceId: string, capacity: number): Promise<boolean> {
  return tx.claims.take({ instanceId, offerId: 'offer', region: 'here', capacity });
}
