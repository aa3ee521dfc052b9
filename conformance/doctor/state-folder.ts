import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../resources/make-folder.ts';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';
import { reasonOf } from './reason.ts';

const SUBJECT = 'Ledger';
const LITTLE_BYTES = 50 * 1024 * 1024;
const TOO_LITTLE_BYTES = 1024 * 1024;

/** Whether the ledger can be kept: nothing is bought that could not be written down first. */
export function stateFolder(folder: string): Diagnosis {
  try {
    makeFolder(folder);
    tryWriting(join(folder, `.doctor-${process.pid}`));
    const { bavail, bsize } = statfsSync(folder);
    const freeBytes = bavail * bsize;
    const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB`;
    const elsewhere = 'make room, or name another folder with --state-dir';
    if (freeBytes < TOO_LITTLE_BYTES) return config(SUBJECT, `the disk of ${folder} is full`, elsewhere);
    if (freeBytes < LITTLE_BYTES) return note(SUBJECT, `${folder} has only ${free} left`, elsewhere);
    return ok(SUBJECT, `${folder} can be written`);
  } catch (error) {
    return config(
      SUBJECT,
      `the ledger cannot be kept in ${folder} (${reasonOf(error)})`,
      'name a folder that can be written with --state-dir',
    );
  }
}

function tryWriting(path: string): void {
  try {
    const file = openSync(path, 'w', 0o600);
    try {
      writeSync(file, 'x'.repeat(4096));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } finally {
    rmSync(path, { force: true });
  }
}
