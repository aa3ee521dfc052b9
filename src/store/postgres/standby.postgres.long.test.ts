import { Client } from 'pg';
import { expect, it } from 'vitest';
import { until } from '../../../test/support/clocks/until.ts';
import { startEmbedded } from '../../../test/support/databases/postgres.ts';
import { StoreUnavailable } from '../../orchestrator/model/store.ts';
import { account, claim, instance } from '../records.fixture.ts';
import { openPostgresStore } from './store.ts';

it('a server that became a standby is asked for nothing, and is used again once it is promoted [standby-not-read]', async () => {
  const server = await startEmbedded();
  const store = await openPostgresStore(server.url);
  await store.transact((tx) => tx.credentials.insertAccount(account));
  await store.transact((tx) => tx.instances.insert(instance('a')));
  const where = { accountId: account.id, after: null, limit: 1 };
  const { epoch } = await store.read.changes.page(where);
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
  // What it did not get from the primary would be missed.
  expect((await store.read.changes.page(where)).epoch).not.toBe(epoch);
  await store.close();
  await server.stop();
});
