import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../ports/clock.ts';
import { lastBackupOf, type MakeBackup, ScheduledBackups } from './backups.ts';

const START = Date.UTC(2026, 10, 30, 3);
let folder: string;
let now: number;
let told: string[];

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'berth-backups-')), 'copies');
  now = START;
  told = [];
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true }));

const write: MakeBackup = async (file) => writeFileSync(file, 'copy');

function schedule(make: MakeBackup = write, keep = 3) {
  const backups = { folder, every_hours: 24, keep };
  const alarms = {
    server: 'here',
    raise: ({ text, detail, fields }: { text: string; detail?: string; fields?: object }) =>
      void told.push(`${text}: ${detail}; ${JSON.stringify(fields)}`),
    end: () => void told.push('ended'),
  };
  const log = { info: () => undefined, warn: () => undefined };
  return new ScheduledBackups({ backups, product: 'berth', clock: { now: () => now }, log, make, alarms });
}

it('makes a copy a day, also over restarts, and keeps the newest', async () => {
  for (let day = 0; day < 5; day++) {
    await schedule().poll();
    now += DAY_MS;
  }
  expect(readdirSync(folder).sort()).toEqual([
    'berth-20261202T030000Z.db',
    'berth-20261203T030000Z.db',
    'berth-20261204T030000Z.db',
  ]);
  const last = lastBackupOf({ folder, every_hours: 24, keep: 3 }, 'berth', { now: () => now })?.();
  expect(last).toEqual({
    file: join(folder, 'berth-20261204T030000Z.db'),
    takenAt: START + 4 * DAY_MS,
    bytes: 4,
  });
});

it('makes none before its time, and one at a time', async () => {
  await schedule().poll();
  let calls = 0;
  const open = Promise.withResolvers<void>();
  const job = schedule(async (file) => {
    calls++;
    await open.promise;
    return write(file);
  });
  now += DAY_MS - 1;
  await job.poll();
  expect(calls).toBe(0);
  now += 1;
  const first = job.poll();
  now += HOUR_MS;
  await job.poll();
  open.resolve();
  await first;
  expect(calls).toBe(1);
});

it('raises an alarm for a failed copy, tries again an hour later, and ends it with the next one', async () => {
  let calls = 0;
  const job = schedule(async (file) => {
    if (++calls === 1) throw new Error('the disk is full');
    return write(file);
  });
  await job.poll();
  expect(told[0]).toMatch(
    /^a scheduled backup failed: .*: there is none; the disk is full; {"cause":"the disk is full"}$/,
  );
  now += HOUR_MS - 1;
  await job.poll();
  expect(calls).toBe(1);
  now += 1;
  await job.poll();
  expect(told.at(-1)).toBe('ended');
});

it('deletes only what it made, and what killed copies left', async () => {
  mkdirSync(folder);
  const others = [
    'berth-20261101.db',
    'marketplace-20261101T030000Z.db',
    'berth-20269901T030000Z.db',
    'notes.txt',
  ];
  for (const name of [...others, 'berth-20261101T030000Z.db', 'berth-20261101T030000Z.db.part-77'])
    writeFileSync(join(folder, name), '');
  await schedule(write, 1).poll();
  expect(readdirSync(folder).sort()).toEqual([...others, 'berth-20261130T030000Z.db'].sort());
});

it('a copy with a name from the future neither hides nor replaces those of now', async () => {
  mkdirSync(folder);
  writeFileSync(join(folder, 'berth-20301130T030000Z.db'), '');
  let calls = 0;
  const job = schedule(async (file) => {
    calls++;
    return write(file);
  }, 2);
  for (let poll = 0; poll < 4; poll++) {
    await job.poll();
    now += 1_000;
  }
  expect(calls).toBe(1);
  now += DAY_MS;
  await job.poll();
  expect(readdirSync(folder).sort()).toEqual(['berth-20261130T030000Z.db', 'berth-20261201T030004Z.db']);
});

it('tries again after the clock was set back', async () => {
  let calls = 0;
  const job = schedule(async () => {
    calls++;
    throw new Error('the disk is full');
  });
  await job.poll();
  now -= 7 * DAY_MS;
  await job.poll();
  expect(calls).toBe(2);
});
