import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { toByteSize } from '../../contract/byte-size.ts';
import { lowDisk } from '../../operator-kit/alarms/disk.ts';
import type { Clock } from '../../ports/clock.ts';
import { broken, type Diagnosis, ok, remedies, warning } from '../../ports/diagnosis.ts';
import { fileProblem } from '../../ports/errors.ts';
import { diskRoomOf } from '../../runtime/disk-room.ts';

/** With a larger difference of clocks, leases and tokens expire at the wrong time. */
const CLOCK_TOLERANCE_MS = 1_000;
const SLOW_FSYNC_MS = 100;

/** File systems that are unsafe for SQLite's file, by the magic number of statfs(2). */
const unsafeFileSystems: Readonly<Record<number, [name: string, why: string]>> = {
  [0x01021994]: ['tmpfs', 'it is in memory, and its files are lost at a reboot'],
  [0x6969]: ['NFS', 'its locks do not keep two servers apart'],
  [0xff534d42]: ['CIFS', 'its locks do not keep two servers apart'],
  [0xfe534d42]: ['SMB', 'its locks do not keep two servers apart'],
};

/** Checks that commits are durable, and that the local clock agrees. Leaves no data behind. */
export async function* diagnoseDatabase(
  database: string,
  clock: Pick<Clock, 'now'>,
): AsyncGenerator<Diagnosis> {
  if (isPostgres(database)) yield* diagnosePostgres(database, clock);
  else yield* diagnoseSqlite(sqlitePath(database), clock);
}

async function* diagnosePostgres(url: string, clock: Pick<Clock, 'now'>): AsyncGenerator<Diagnosis> {
  const { readDurability } = await import('../../store/postgres/durability.ts');
  const askedAt = clock.now();
  const { now, ...settings } = await readDurability(url);
  const answeredAt = clock.now();
  yield ok('database connection', `PostgreSQL answered in ${Math.round(answeredAt - askedAt)} ms`);
  const off = Object.entries(settings).filter(([, value]) => value === 'off');
  yield off.length === 0
    ? ok('database durability', 'commits are on disk')
    : broken(
        'database durability',
        `${off.map(([name]) => name).join(' and ')} is off: a power cut loses committed changes, or the whole database`,
        `Set ${off.map(([name]) => `${name} = on`).join(' and ')} in postgresql.conf.`,
      );
  const aheadMs = Math.round((askedAt + answeredAt) / 2 - now);
  yield Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS + (answeredAt - askedAt) / 2
    ? ok('clock', "it agrees with the database's")
    : broken(
        'clock',
        `it is ${Math.abs(aheadMs)} ms ${aheadMs > 0 ? 'ahead of' : 'behind'} the database's`,
        remedies.clock,
      );
}

async function* diagnoseSqlite(file: string, clock: Pick<Clock, 'now'>): AsyncGenerator<Diagnosis> {
  const folder = nearestFolder(dirname(file));
  const subject = `database folder ${folder}`;
  try {
    const ms = timeOfFsync(folder);
    yield ms <= SLOW_FSYNC_MS
      ? ok(subject, `a write reaches the disk within ${Math.ceil(ms)} ms`)
      : warning(
          subject,
          `a write took ${Math.ceil(ms)} ms to reach the disk: each create waits for one`,
          'Put the database on a local SSD.',
        );
  } catch (error) {
    yield broken(subject, `nothing can be written there: ${fileProblem(error)}`, toWriteRemedy(error));
    return;
  }
  const [name, why] = unsafeFileSystems[Number(statfsSync(folder).type)] ?? [];
  yield name === undefined
    ? ok('database file system', 'it is local')
    : warning(
        'database file system',
        `${folder} is on ${name}: ${why}`,
        'Put the database on a local disk, or use PostgreSQL.',
      );
  yield* diagnoseRoom(folder);
  const aheadMs = existsSync(file) ? statSync(file).mtimeMs - clock.now() : 0;
  yield aheadMs <= CLOCK_TOLERANCE_MS
    ? ok('clock', 'it is later than the last write of the database')
    : broken(
        'clock',
        `the database was last written ${Math.round(aheadMs / 1000)} s after now: the clock was set back`,
        'Run NTP (chrony or systemd-timesyncd), and wait until it has set the clock.',
      );
}

function toWriteRemedy(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'Make room on its disk.';
  if (code === 'EROFS')
    return 'Mount it writable: after a disk fault, Linux mounts it read-only (see dmesg).';
  return 'Give the user that runs Berth write permission there.';
}

const NO_ROOM_BYTES = 1e8;

async function* diagnoseRoom(folder: string): AsyncGenerator<Diagnosis> {
  const room = await diskRoomOf(folder);
  if (room === undefined) return;
  const subject = 'database disk';
  const finding = `${toByteSize(room.free)} of ${toByteSize(room.size)} are free`;
  if (room.free >= lowDisk(room)) yield ok(subject, finding);
  else yield (room.free < NO_ROOM_BYTES ? broken : warning)(subject, finding, remedies.disk);
}

function nearestFolder(folder: string): string {
  return existsSync(folder) ? folder : nearestFolder(dirname(folder));
}

function timeOfFsync(folder: string): number {
  const own = mkdtempSync(join(folder, '.berth-doctor-'));
  try {
    const file = openSync(join(own, 'probe'), 'w');
    try {
      const begunAt = performance.now();
      writeSync(file, Buffer.alloc(4096, 1));
      fsyncSync(file);
      return performance.now() - begunAt;
    } finally {
      closeSync(file);
    }
  } finally {
    rmSync(own, { recursive: true });
  }
}
