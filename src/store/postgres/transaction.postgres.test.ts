import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { account, dueWork, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import type { Transaction } from '../../orchestrator/model/store.ts';
import { openPostgresStore } from './store.ts';
import { startWire } from './wire.fixture.ts';

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
});
afterAll(() => server[Symbol.asyncDispose]());

it('a write that fails is the failure of its transaction, whatever came after it, and harms no later one', async () => {
  const store = await openPostgresStore(url);
  await store.transact((tx) => tx.credentials.insertAccount(account));
  const unknownAccount = instance('a', { accountId: 'acc-unknown' });
  const after: ((tx: Transaction) => Promise<unknown>)[] = [
    async () => undefined,
    (tx) => tx.work.of('a'),
    () => Promise.reject(new Error('of the body')),
  ];
  for (const next of after) {
    const failing = store.transact(async (tx) => {
      await tx.instances.insert(unknownAccount);
      await tx.work.put({ ...dueWork, resourceId: 'a' });
      await next(tx);
    });
    await expect(failing).rejects.toThrow(/23503 \(instances_account_id/);
  }
  await store.transact(async (tx) => {
    await tx.instances.insert(instance('a'));
    await tx.work.put({ ...dueWork, resourceId: 'a' });
  });
  expect(await store.read.work.of('a')).toMatchObject({ resourceId: 'a' });
  await store.close();
});

it('sends its writes together with the commit, and all of it in one packet', async () => {
  await using wire = await startWire(url);
  // The heartbeat would send packets too.
  const store = await openPostgresStore(wire.url, {
    timing: { heartbeatMs: 600_000, staleAfterMs: 600_000 },
  });
  await until('the commit feed is live', () => store.isCommitFeedLive());
  const insert = (id: string) =>
    store.transact(async (tx) => {
      await tx.instances.byId(id);
      await tx.instances.insert(instance(id));
      await tx.work.put({ ...dueWork, resourceId: id });
    });
  await insert('b');
  const before = wire.packets();
  await insert('c');
  expect(wire.packets() - before).toBe(2);
  await store.close();
});

describe('a transaction whose BEGIN is refused writes nothing [begin-refused]', () => {
  const insert = (tx: Transaction) => tx.instances.insert(instance('d'));
  it.each<[string, (tx: Transaction) => Promise<unknown>]>([
    ['that reads first', async (tx) => tx.instances.byId('d').then(() => insert(tx))],
    ['that writes first, and waits for no answer', insert],
    ['that writes first, and waits for the answer', (tx) => tx.work.makeDue('a', 1)],
  ])('%s', async (_what, body) => {
    await using wire = await startWire(url);
    const store = await openPostgresStore(wire.url);
    const before = await store.read.work.of('a');
    wire.unsay('BEGIN');
    await expect(store.transact(body)).rejects.toThrow(/42601/);
    wire.unsay('');
    expect(await store.read.instances.byId('d')).toBeNull();
    expect(await store.read.work.of('a')).toEqual(before);
    await store.transact(insert);
    await server.query("DELETE FROM instances WHERE id = 'd'", url);
    await store.close();
  });
});
