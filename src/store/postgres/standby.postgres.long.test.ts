import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedServer, startEmbedded } from '../../../test/support/databases/embedded-postgres.ts';
import { team, user } from '../../../test/support/rows/marketplace-rows.ts';
import { account, claim, dueWork, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import { StoreUnavailable } from '../../orchestrator/model/store.ts';
import { openMarketplacePostgresStore } from '../marketplace/postgres/store.ts';
import { openPostgresStore } from './store.ts';

it('a server that became a standby is asked for nothing, and is used again once it is promoted [standby-not-read]', async () => {
  const server = await startEmbedded();
  const store = await openPostgresStore(server.url);
  await store.transact((tx) => tx.credentials.insertAccount(account));
  await store.transact((tx) => tx.instances.insert(instance('a')));
  await server.demote();
  for (let ask = 0; ask < 3; ask++) {
    await expect(store.read.instances.byId('later')).rejects.toThrow(StoreUnavailable);
    await expect(store.claimWork(claim)).rejects.toThrow(StoreUnavailable);
    await expect(store.transact((tx) => tx.instances.insert(instance('b')))).rejects.toThrow(
      StoreUnavailable,
    );
  }
  await expect(openPostgresStore(server.url)).rejects.toThrow('give --database the primary server');
  const operator = new Client({ connectionString: server.url });
  await operator.connect();
  await operator.query('SELECT pg_promote()');
  await operator.end();
  await until('it serves', () =>
    store
      .transact((tx) => tx.instances.insert(instance('b')))
      .then(
        () => true,
        () => false,
      ),
  );
  expect(await store.read.instances.list({})).toHaveLength(2);
  await store.close();
  await server.stop();
});

describe('a commit for which a synchronous standby is lost [synchronous-standby-lost]', () => {
  const NAME = 'standby_1';
  let primary: EmbeddedServer;
  let standby: EmbeddedServer;
  let operator: Client;
  beforeAll(async () => {
    primary = await startEmbedded();
    operator = new Client({ connectionString: primary.url });
    await operator.connect();
    standby = await primary.startStandby(NAME);
    await operator.query(`ALTER SYSTEM SET synchronous_standby_names = '${NAME}'`);
    await operator.query('SELECT pg_reload_conf()');
    await until('it is synchronous', async () => (await states()).includes('sync'));
  });
  afterAll(async () => {
    await operator.end();
    await primary.stop();
  });

  const states = async (): Promise<unknown[]> =>
    (await operator.query('SELECT sync_state FROM pg_stat_replication')).rows.map((row) => row.sync_state);
  /** Cancels or terminates all waits for the standby, as an operator would, until `ended`. */
  const endWaits = async (how: 'pg_cancel_backend' | 'pg_terminate_backend', ended: Promise<unknown>) => {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    ended.then(over, over);
    await until('the commit is answered', async () => {
      if (!isOver)
        await operator.query(`SELECT ${how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
      return isOver;
    });
  };

  it('is no success for either store, however the wait for it ends', async () => {
    await operator.query('CREATE DATABASE marketplace');
    const marketplaceUrl = new URL(primary.url);
    marketplaceUrl.pathname = '/marketplace';
    const store = await openPostgresStore(primary.url);
    const marketplace = await openMarketplacePostgresStore(marketplaceUrl.href);
    await store.transact(async (tx) => {
      await tx.credentials.insertAccount(account);
      await tx.instances.insert(instance('before'));
      await tx.work.put({ resourceId: 'before', ...dueWork });
    });
    await marketplace.transact((tx) => tx.users.insert(user()));
    await marketplace.transact((tx) => tx.teams.insert(team()));

    await standby.stop();
    for (const [index, how] of (['pg_cancel_backend', 'pg_terminate_backend'] as const).entries()) {
      const later = claim.now + index * 60_000;
      const commits: Record<string, () => Promise<unknown>> = {
        'of an instance': () => store.transact((tx) => tx.instances.insert(instance(how))),
        'of a team': () => marketplace.transact((tx) => tx.teams.insert(team({ id: how, slug: how }))),
        'of a claim': () => store.claimWork({ ...claim, now: later, leaseUntil: later + 1_000 }),
      };
      for (const [what, commit] of Object.entries(commits)) {
        const committing = commit();
        await endWaits(how, committing);
        await expect(committing, `${how} ${what}`).rejects.toThrow(StoreUnavailable);
      }
    }
    const waiting = store.transact((tx) => tx.instances.insert(instance('waited for too long')));
    await expect(waiting).rejects.toThrow(StoreUnavailable);

    await operator.query("ALTER SYSTEM SET synchronous_standby_names = ''");
    await operator.query('SELECT pg_reload_conf()');
    await store.transact((tx) => tx.instances.insert(instance('after')));
    // This server's disk has all of them, each once. A standby that took over might have had none.
    expect((await store.read.instances.list({})).map(({ id }) => id).sort()).toEqual(
      ['before', 'pg_cancel_backend', 'pg_terminate_backend', 'waited for too long', 'after'].sort(),
    );
    await store.close();
    await marketplace.close();
  });
});
