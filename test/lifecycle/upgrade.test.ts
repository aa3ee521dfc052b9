import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { backUp, startOn } from '../support/restored.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

/** The newest version whose rows knew no orders, attempts and sightings. */
const BEFORE = 17;

/** Makes a copy of the database what the version before would have left. */
function downgrade(path: string, change: (db: Database.Database) => void): void {
  const db = new Database(path);
  try {
    db.exec(`
      DROP INDEX instances_by_change; DROP INDEX volumes_by_change;
      ALTER TABLE instances DROP COLUMN changed_in;
      ALTER TABLE volumes DROP COLUMN changed_in;
      ALTER TABLE volumes DROP COLUMN version;
      DROP TABLE attempts; DROP TABLE listings; DROP TABLE sightings;
      ALTER TABLE instances DROP COLUMN destroy_order;
      ALTER TABLE volumes DROP COLUMN host;
      ALTER TABLE volumes DROP COLUMN destroy_order;
      ALTER TABLE work DROP COLUMN fence;
      ALTER TABLE work DROP COLUMN progress;
    `);
    db.pragma(`user_version = ${BEFORE}`);
    change(db);
  } finally {
    db.close();
  }
}

function work(db: Database.Database, id: string, resourceKind: string, kind: string, attempt: number): void {
  db.prepare(
    `INSERT INTO work (resource_id, resource_kind, kind, cookie, attempt, not_before, deadline_at, last_error, lease_token,
       lease_owner, lease_until, waits_since, waited_attempt, is_held, platform)
     VALUES (?, ?, ?, NULL, ?, 0, ?, NULL, NULL, NULL, 0, 0, NULL, 0, 'default')`,
  ).run(id, resourceKind, kind, attempt, kind === 'create' ? Date.now() + 600_000 : null);
}

async function online(first: TestOrchestrator): Promise<string> {
  const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
  const id = String(body['id']);
  await first.waitFor(id, 'ONLINE');
  return id;
}

it('work of the version before goes on: names stay, what was asked for is removed, and what was lost is not [upgrade-under-way]', async () => {
  await using first = await startTestOrchestrator({ reconcile: { watch_interval_s: 3600 } });
  const [created, deleted, failed, lost, other] = [
    await online(first),
    await online(first),
    await online(first),
    await online(first),
    await online(first),
  ];
  const { body } = await first.request('POST', '/volumes', {
    body: { name: 'data', size_gb: 10, region: instanceRequest()['region'] },
  });
  const volume = String(body['id']);
  await until(
    'the volume is there',
    async () => (await first.request('GET', `/volumes/${volume}`)).body['status'] === 'AVAILABLE',
  );
  await backUp(first);
  const path = `${first.databasePath}.backup`;
  downgrade(path, (db) => {
    const set = (id: string, changes: string) =>
      db.prepare(`UPDATE instances SET ${changes} WHERE id = ?`).run(id);
    set(created, `status = 'PROVISIONING', endpoint = NULL, create_open_until = ${Number.MAX_SAFE_INTEGER}`);
    work(db, created, 'instance', 'create', 1);
    set(deleted, "status = 'DESTROYING'");
    work(db, deleted, 'instance', 'destroy', 2);
    set(failed, "status = 'ERROR', error = 'The machine of this instance did not boot.'");
    work(db, failed, 'instance', 'destroy', 0);
    set(lost, "status = 'ERROR', error = 'The machine of this instance no longer exists.'");
    db.prepare('INSERT INTO losses (instance_id, at) VALUES (?, ?)').run(lost, Date.now());
    work(db, lost, 'instance', 'destroy', 1);
    db.prepare("UPDATE volumes SET status = 'DELETING' WHERE id = ?").run(volume);
    work(db, volume, 'volume', 'destroy', 1);
  });
  await using upgraded = await startOn(first, openSqliteStore(path));
  await until(
    'the create is adopted',
    async () => (await upgraded.read(`/instances/${created}`)) === 'ONLINE',
  );
  for (const path of [`/instances/${deleted}`, `/volumes/${volume}`])
    await until(`${path} is gone`, async () => (await upgraded.read(path)) === '404');
  const refs = async () => {
    const listing = await first.driver.list();
    return listing.answer === 'listed' ? listing.items.map(({ ref }) => ref).sort() : [];
  };
  const kept = [created, lost, other].map((id) => `berth-${id}`).sort();
  await until('what the failed create made is removed', async () => (await refs()).length === kept.length);
  expect((await upgraded.store.read.work.of(lost))?.kind).toBe('release');
  expect(await refs()).toEqual(kept);
  expect(await upgraded.store.read.instances.byId(created)).toMatchObject({ ownerRef: `berth-${created}` });
  const orders = await Promise.all(
    [deleted, failed, lost].map(
      async (id) => (await upgraded.store.read.instances.byId(id))?.destroyOrder?.reason ?? null,
    ),
  );
  expect(orders).toEqual(['tenant', 'failed_create', null]);
});
