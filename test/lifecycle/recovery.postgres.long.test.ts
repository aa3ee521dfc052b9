import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { type PostgresServer, startPostgres } from '../support/databases/postgres.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { startOn } from '../support/restored.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

it('several replicas of a restored database give each machine and volume one row, and one claim [restore-several-replicas]', async () => {
  await using first = await startTestOrchestrator({ reconcile: { watchIntervalMs: 3_600_000 } });
  const made = await Promise.all(
    Array.from({ length: 5 }, () => first.request('POST', '/instances', { body: instanceRequest() })),
  );
  const ids = made.map(({ body }) => String(body['id']));
  await Promise.all(ids.map((id) => first.waitFor(id, 'ONLINE')));
  const { body: volume } = await first.request('POST', '/volumes', {
    body: volumeRequest({ instance_ids: [ids[0]] }),
  });

  const volumePath = `/volumes/${volume['id']}`;
  await until(
    'it is attached',
    async () => (await first.request('GET', volumePath)).body['status'] === 'ATTACHED',
  );
  const url = await server.createDatabase();
  const stores = await Promise.all(Array.from({ length: 3 }, () => openPostgresStore(url)));
  const [store] = stores;
  if (store === undefined) throw new Error('no store');
  const { credentials, installation } = first.store.read;
  const [account, [key], known] = [
    await credentials.accountById(first.account.id),
    await credentials.listKeys(),
    await installation.get(),
  ];
  if (account === null || key === undefined || known === null) throw new Error('nothing to restore');
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.credentials.insertKey(key);
    await tx.installation.put(known);
    await tx.marks.put('restored_from', 1);
  });
  const replicas = await Promise.all(stores.map((each) => startOn(first, each)));
  try {
    for (const replica of replicas) {
      for (const id of ids) expect(await replica.read(`/instances/${id}`)).toBe('ONLINE');
      expect(await replica.read(volumePath)).toBe('ATTACHED');
    }
    expect((await store.read.instances.list({})).map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(await store.read.claims.use()).toMatchObject([{ claimed: 5 }]);
    expect(await store.read.marks.get('restored_from')).toBeNull();
  } finally {
    for (const replica of replicas) await replica[Symbol.asyncDispose]();
  }
});
