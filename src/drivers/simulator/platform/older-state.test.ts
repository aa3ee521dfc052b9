import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { generateHostKey } from '../../kit/host-key.ts';
import { machineSpec, observe } from '../simulator.fixture.ts';
import { createSimulator } from './simulator.ts';

/** Tables and records as written by versions before the platform model. */
const schema = `
  CREATE TABLE records (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
  CREATE TABLE files (disk TEXT, path TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (disk, path)) WITHOUT ROWID;
  CREATE TABLE unit_events (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);
`;

function writeOlderState(file: string, now: number): void {
  const db = new Database(file);
  db.exec(schema);
  const put = (kind: string, id: string, body: object) =>
    db.prepare('INSERT INTO records (kind, id, body) VALUES (?, ?, ?)').run(kind, id, JSON.stringify(body));
  const machine = (ref: string, number: number, fields: object) =>
    put('machine', ref, {
      spec: machineSpec({ ref }),
      number,
      createdAt: now - 60_000,
      power: 'running',
      until: null,
      bootFails: false,
      sshListens: true,
      holdsUnit: true,
      bootedAt: now - 60_000,
      boots: 1,
      reclaimAt: null,
      sshPort: null,
      sshHostKey: generateHostKey(),
      cloudInitUntil: now - 60_000,
      runcmdDone: 0,
      memoryOf: now - 60_000,
      ...fields,
    });
  machine('berth-run', 1, {});
  machine('berth-stop', 2, { power: 'stopping', until: now + 1_000 });
  machine('berth-again', 3, { boots: 2, bootedAt: now + 5_000, restartId: 'one' });
  const spec = { ref: 'vol-1', datacenter: 'fra', sizeGb: 20, note: 'a note' };
  put('volume', 'vol-1', { spec, createdAt: now - 60_000, state: 'available', until: null });
  const growing = { ...spec, ref: 'vol-2', sizeGb: 10 };
  const growth = { state: 'resizing', until: now + 1_000, nextSizeGb: 30 };
  put('volume', 'vol-2', { spec: growing, createdAt: now - 60_000, ...growth });
  const attachment = { volume: 'vol-1', machine: 'berth-run', state: 'attached', until: null };
  put('attachment', 'vol-1/berth-run', attachment);
  db.close();
}

it('opens the state of an older version, and continues open work', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-older-'));
  const clock = new VirtualClock();
  writeOlderState(join(folder, 'simulator.db'), clock.now());
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 3, spot: false }];
  const open = () => createSimulator({ stateFile: join(folder, 'simulator.db'), capacity }, clock);
  let driver = await open();
  const { volumes } = driver;
  expect(await observe(driver, 'berth-run')).toMatchObject({
    power: 'running',
    createdAt: clock.now() - 60_000,
  });
  expect(await driver.restart('berth-again', 'one', null)).toMatchObject({ outcome: 'pending' });
  expect(await driver.create(machineSpec({ ref: 'berth-more' }), null)).toMatchObject({ code: 'capacity' });
  expect(await volumes?.get('vol-1')).toMatchObject({ value: { attachedTo: ['berth-run'], sizeGb: 20 } });

  await clock.advance(5_000);
  expect(await driver.restart('berth-again', 'one', null)).toMatchObject({ outcome: 'done' });
  expect(await observe(driver, 'berth-stop')).toMatchObject({ power: 'stopped' });
  expect(await volumes?.get('vol-2')).toMatchObject({ value: { sizeGb: 30 } });
  expect(await volumes?.detach('vol-1', 'berth-run', null)).toMatchObject({ outcome: 'pending' });
  expect(await driver.create(machineSpec({ ref: 'berth-more' }), null)).toMatchObject({ outcome: 'pending' });

  await driver.close();
  driver = await open();
  expect((await driver.inspect()).machines.map(({ ref }) => ref).sort()).toEqual([
    ...['berth-again', 'berth-more', 'berth-run', 'berth-stop'],
  ]);
  expect(await driver.volumes?.get('vol-2')).toMatchObject({ value: { sizeGb: 30 } });
  await driver.close();
  rmSync(folder, { recursive: true });
});
