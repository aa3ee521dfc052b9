import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  deployment,
  intent,
  mail,
  runningDeployment,
  seed,
  sshKey,
  volume,
} from '../../../../test/support/rows/marketplace-rows.ts';
import { DatabaseRefused } from '../../database-refused.ts';
import { openDatabase } from '../../sqlite/open-database.ts';
import { assertNotServed, takeServeLock } from '../../sqlite/serve-lock.ts';
import { openSqliteStore } from '../../sqlite/store.ts';
import { marketplaceFormat } from './marketplace-format.ts';
import { openMarketplaceSqliteStore } from './store.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-open-'));
  path = join(folder, 'marketplace.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = () => openDatabase(path, {}, marketplaceFormat);

it('finds rows to sync by their indexes', () => {
  const db = open();
  const plan = (sql: string): string =>
    (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[])
      .map(({ detail }) => detail)
      .join();
  expect(
    plan(
      `SELECT * FROM deployments WHERE provider_id = 'p'
         AND (status IN ('deploying', 'running', 'stopped') OR cleanup = 'wanted')`,
    ),
  ).toContain('deployments_to_tend');
  expect(
    plan("SELECT * FROM volumes WHERE provider_id = 'p' AND (action IS NOT NULL OR cleanup = 'wanted')"),
  ).toContain('volumes_to_tend');
  expect(
    plan(
      "SELECT status, count(*) FROM deployments WHERE status IN ('deploying', 'running', 'stopped') GROUP BY status",
    ),
  ).toContain('COVERING INDEX deployments_active_by_status');
  db.close();
});

describe('a file that is refused is left as it is:', () => {
  const cases: [string, RegExp, () => Promise<void> | void][] = [
    [
      'that of `berth serve`',
      /belongs to `berth serve`: give `berth marketplace` its own database with --database/,
      () => openSqliteStore(path).close(),
    ],
    [
      'of another program',
      /is a database of another program: give --database another file/,
      () => withDatabase((db) => db.pragma('application_id = 7')),
    ],
    [
      'newer than this program',
      /is newer \(version 1000\) than this program/,
      () => withDatabase((db) => db.pragma('user_version = 1000')),
    ],
    ...(
      [
        ['deployment dep-1', "UPDATE deployments SET status = 'runming' WHERE id = 'dep-1'"],
        ['deployment dep-1', 'UPDATE deployments SET launch = \'{"stata":"made"}\' WHERE id = \'dep-1\''],
        ['deployment dep-1', "UPDATE deployments SET name = '\"cut' WHERE id = 'dep-1'"],
        ['deployment dep-2', "UPDATE deployments SET suspicion = '{}' WHERE id = 'dep-2'"],
        ['volume vol-1', "UPDATE volumes SET cleanup = 'maybe'"],
        ['team team-1', "UPDATE teams SET watch = '{'"],
        ['SSH key ssh-1', "UPDATE ssh_keys SET name = 'laptop'"],
        ['mail mail-1', "UPDATE mails SET text = 'Add'"],
      ] as const
    ).map(([row, change]): [string, RegExp, () => Promise<void>] => [
      `with a row that cannot be read (${change})`,
      new RegExp(`is damaged \\(the row of ${row} cannot be read\\): restore it`),
      async () => {
        await fill();
        withDatabase((db) => db.exec(change));
      },
    ]),
  ];

  function withDatabase(change: (db: Database.Database) => void): void {
    const db = open();
    change(db);
    db.close();
    // As after an unclean stop: the file is checked.
    rmSync(`${path}.state`, { force: true });
  }

  it.each(cases)('%s', async (_what, sentence, prepare) => {
    await prepare();
    const before = readFileSync(path);
    expect(() => openMarketplaceSqliteStore(path)).toThrow(DatabaseRefused);
    expect(() => openMarketplaceSqliteStore(path)).toThrow(sentence);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('a sound file is opened, so the cases above are refused for their own reason', async () => {
    await fill();
    await openMarketplaceSqliteStore(path, { mayMigrate: false }).close();
  });
});

async function fill(): Promise<void> {
  const store = openMarketplaceSqliteStore(path);
  await seed(store, 5);
  await store.transact(async (tx) => {
    await tx.sshKeys.insert(sshKey());
    await tx.deployments.insert(runningDeployment({ failureDetails: 'why' }));
    await tx.deployments.insert(
      deployment({
        id: 'dep-2',
        action: intent('pause'),
        refusal: { id: 1, code: 'PROVIDER_REFUSED', message: 'no' },
        suspicion: { status: 'GONE', since: 1, polls: 1 },
      }),
    );
    await tx.volumes.insert(
      volume({ action: intent('create'), refusal: { id: 1, code: 'PROVIDER_REFUSED', message: 'no' } }),
    );
    await tx.mail.insert(mail({ lastError: 'no' }));
  });
  await store.close();
}

it('the file is refused to `berth serve`, and to a second `berth marketplace`, each with the reason', async () => {
  await openMarketplaceSqliteStore(path).close();
  expect(() => openSqliteStore(path)).toThrow(/belongs to `berth marketplace`: give `berth serve` its own/);
  const giveBack = takeServeLock(path, 'berth marketplace');
  expect(() => assertNotServed(path, 'berth marketplace')).toThrow(/Another `berth marketplace` is running/);
  giveBack();
});
