import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { CREATE_IS_OPEN } from '../orchestrator/model/platform-resource.ts';
import { readMigrations } from './migrations.ts';
import { MOVES_VISIBILITY, rowsOfBefore, WRITE_BEFORE } from './visibility-migration.fixture.ts';

it.each(['sqlite', 'postgres', 'marketplace-sqlite', 'marketplace-postgres'] as const)(
  'the migrations of %s are numbered 1, 2, 3 …',
  (database) => {
    const versions = readMigrations(database).map(({ version }) => version);
    expect(versions).not.toEqual([]);
    expect(versions).toEqual(versions.map((_, index) => index + 1));
  },
);

it('an older SQLite database keeps the record of creates that may still show up', () => {
  const db = new Database(':memory:');
  for (const { sql } of readMigrations('sqlite')) {
    if (sql.includes(MOVES_VISIBILITY)) db.exec(WRITE_BEFORE);
    db.exec(sql);
  }
  const rows = db.prepare('SELECT id, create_open_until FROM instances ORDER BY id').raw().all();
  const volumes = db.prepare('SELECT id, create_open_until FROM volumes ORDER BY id').raw().all();
  db.close();
  expect([rows, volumes]).toEqual(rowsOfBefore(CREATE_IS_OPEN));
});

it('an alarm about leftover disks keeps its acknowledgement under its new name', () => {
  const db = new Database(':memory:');
  const insert = `INSERT INTO alarms (kind, subject, platform, text, since, last_seen_at, acknowledged_by)
    VALUES ('disk_left', 'berth-a', 'default', 'disks', 1, 2, 'ann'), ('step_failing', 'a', 'default', '', 1, 2, NULL)`;
  for (const { sql } of readMigrations('sqlite')) {
    if (sql.includes("'disk_left'")) db.exec(insert);
    db.exec(sql);
  }
  const rows = db.prepare('SELECT kind, subject, acknowledged_by FROM alarms ORDER BY kind').raw().all();
  db.close();
  expect(rows).toEqual([
    ['leftover', 'berth-a', 'ann'],
    ['step_failing', 'a', null],
  ]);
});
