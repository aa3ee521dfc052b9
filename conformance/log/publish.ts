import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import type { Report } from '../report/report.ts';
import { toEntry } from './entry.ts';
import { lockFile } from './lock.ts';
import type { LogDisk } from './log-disk.ts';
import { LogWriter } from './log-writer.ts';
import type { LogProof } from './proof.ts';

export interface Publishing {
  disk: LogDisk;
  /** The private key of the log. */
  key: KeyObject;
  /** The name of the log; may be absent if the log has entries. */
  origin?: string;
}

export interface Published extends LogProof {
  /** False if the log had it before. */
  isNew: boolean;
}

/**
 * Appends a signed report to a log in a folder. An earlier call that ended half-way is completed first.
 * @throws {CertificateError} if the report or the log is not what its key signed
 * @throws {LogUnavailable} if the folder cannot be read or written, or another process writes to it
 */
export async function publish(report: Report, { disk, key, origin }: Publishing): Promise<Published> {
  const entry = toEntry(report);
  disk.makeFolder();
  using _lock = lockFile(lockOf(disk.folder));
  const log = await LogWriter.open(disk, key, origin, entry);
  const unfinished = log.unfinished();
  if (unfinished !== undefined) await log.append(unfinished);
  const known = log.find(entry);
  const index = known ?? (await log.append(entry));
  log.prune();
  return { ...(await log.prove(index)), isNew: known === undefined };
}

/** The lock of everything that writes to the folder of a log. */
export const lockOf = (folder: string): string => join(folder, '.lock');
