import { expect, it, onTestFinished } from 'vitest';
import { account, accountId, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { openMemoryStore } from '../../store/sqlite/store.ts';
import { ChangeWaits } from './change-waits.ts';
import { listChanges } from './list-changes.ts';

async function start(image?: Buffer) {
  const clock = new VirtualClock();
  const store = openMemoryStore(image);
  const changeWaits = new ChangeWaits({ store, clock });
  onTestFinished(async () => {
    changeWaits.close();
    await store.close();
  });
  if (image === undefined) await store.transact((tx) => tx.credentials.insertAccount(account));
  const insert = (id: string) => store.transact((tx) => tx.instances.insert(instance(id)));
  const list = (since?: string, waitMs = 0, client = new AbortController().signal) =>
    listChanges({ store, clock, changeWaits }, accountId, { since, waitMs, client });
  return { clock, store, changeWaits, insert, list };
}

it('answers reset to a cursor that is a day old, because unseen changes may be pruned', async () => {
  const { clock, list } = await start();
  const { cursor } = await list();
  await clock.advance(DAY_MS - 1);
  expect((await list(cursor)).reset).toBe(false);
  await clock.advance(1);
  const { reset, cursor: next } = await list(cursor);
  expect(reset).toBe(true);
  expect((await list(next)).reset).toBe(false);
});

it('answers reset to a cursor of another version of Berth', async () => {
  const { list } = await start();
  const later = Buffer.from('[2,{"anything":true}]').toString('base64url');
  expect((await list(later)).reset).toBe(true);
});

it('answers reset after a restored database is opened, also if it has changed as often since', async () => {
  const { store, insert, list } = await start();
  await insert('kept');
  const backup = store.image();
  await insert('lost');
  const { cursor } = await list();
  const restored = await start(backup);
  await restored.insert('another');
  const { reset, changes, cursor: next } = await restored.list(cursor);
  expect([reset, changes]).toEqual([true, []]);
  await restored.insert('later');
  expect(await restored.list(next)).toMatchObject({ reset: false, changes: [{ id: 'later' }] });
});

it('answers reset with the end of the changes, also to a cursor more than a page behind', async () => {
  const { list } = await start();
  const { cursor } = await list();
  const other = await start();
  await other.store.transact(async (tx) => {
    for (let count = 0; count < 1_001; count++) await tx.instances.insert(instance(`i-${count}`));
  });
  const { cursor: next } = await other.list(cursor);
  expect((await other.list(next)).changes).toEqual([]);
});

it('waits no longer when its client goes, and leaves no timer and no listener', async () => {
  const { clock, changeWaits, insert, list } = await start();
  const { cursor } = await list();
  const client = new AbortController();
  const waiting = list(cursor, 30_000, client.signal);
  await clock.advance(1);
  expect(changeWaits.size).toBe(1);
  client.abort();
  expect((await waiting).changes).toEqual([]);
  expect([changeWaits.size, clock.pendingTimers]).toEqual([0, 0]);
  await insert('a');
  expect((await list(cursor, 30_000, client.signal)).changes).toMatchObject([{ id: 'a' }]);
});

it('a request that does not wait leaves those that do as they are', async () => {
  const { clock, changeWaits, insert, list } = await start();
  const { cursor } = await list();
  const brief = list();
  const waiting = list(cursor, 30_000);
  await brief;
  expect(changeWaits.size).toBe(1);
  await insert('a');
  expect((await waiting).changes).toMatchObject([{ id: 'a' }]);
  const last = list(cursor, 30_000);
  changeWaits.close();
  await last;
  expect([changeWaits.size, clock.pendingTimers]).toEqual([0, 0]);
});

it('reports whether a reply was cut', async () => {
  const { store, list } = await start();
  const { cursor } = await list();
  await store.transact(async (tx) => {
    for (let count = 0; count < 1_002; count++) await tx.instances.insert(instance(`i-${count}`));
  });
  const first = await list(cursor);
  expect([first.changes.length, first.more]).toEqual([1_000, true]);
  const second = await list(first.cursor);
  expect([second.changes.length, second.more]).toEqual([2, false]);
});

it('sees a commit that comes while it reads', async () => {
  const { store, clock, changeWaits, insert } = await start();
  const deps = { store, clock, changeWaits };
  const client = new AbortController().signal;
  const { cursor } = await listChanges(deps, accountId, { waitMs: 0, client });
  const { changes } = store.read;
  let reads = 0;
  const page: typeof changes.page = async (of) => {
    const read = await changes.page(of);
    reads += 1;
    if (reads === 1) await insert('meanwhile');
    return read;
  };
  const read = { ...store.read, changes: { page } };
  const asked = { since: cursor, waitMs: 30_000, client };
  const { changes: found } = await listChanges({ ...deps, store: { read } }, accountId, asked);
  expect([found, clock.now()]).toMatchObject([[{ id: 'meanwhile' }], new VirtualClock().now()]);
});
