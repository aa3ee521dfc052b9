import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { CertificateError } from '../certificate/sign.ts';
import { audit } from './audit.ts';
import {
  type Checkpoint,
  cosign,
  cosignatureOf,
  formatCheckpoint,
  openCheckpoint,
  withSignature,
} from './checkpoint.ts';
import { lockFile } from './lock.ts';
import { CHECKPOINT, MAX_CHECKPOINT_BYTES, openLog, orSay } from './log.ts';
import { LogDisk } from './log-disk.ts';
import { type LogReader, readLogFile } from './log-reader.ts';
import type { NoteKey } from './note.ts';
import { lockOf } from './publish.ts';
import { compareWithState, writeState } from './state.ts';

export interface Witness {
  /** The name under which it signs. */
  name: string;
  key: KeyObject;
  /** The file with the last checkpoint that it cosigned. */
  statePath: string;
  /** Milliseconds since the epoch. */
  wall: () => number;
}

/**
 * Cosigns the checkpoint of a log, once the log has proved that it still has all that it had at the last one, and that it
 * shows every entry. The state is written before the cosignature is given away.
 * @throws {CertificateError} if the log does not prove it
 * @throws {LogUnavailable}
 */
export async function cosignLog(
  reader: LogReader,
  logKey: NoteKey,
  { name, key, statePath, wall }: Witness,
): Promise<{ cosigned: Checkpoint; earlier: Checkpoint | undefined }> {
  using _lock = lockFile(`${statePath}.lock`);
  const log = await openLog(reader, logKey);
  const earlier = await compareWithState(statePath, log, logKey);
  await audit(log, () => false);
  const cosigned = withSignature(log.checkpoint, cosign(log.checkpoint, name, key, wall()));
  writeState(statePath, cosigned);
  return { cosigned, earlier };
}

/**
 * Adds the cosignature of a witness to the checkpoint of a log in a folder. False if the log has grown since.
 * @throws {CertificateError} if the cosignature is not the witness's, of a checkpoint of this log
 * @throws {LogUnavailable}
 */
export function addCosignature(
  folder: string,
  cosigned: Buffer,
  logKey: NoteKey,
  witnessKey: NoteKey,
): boolean {
  using _lock = lockFile(lockOf(folder));
  const theirs = orSay('the cosigned checkpoint is wrong', () => openCheckpoint(cosigned, logKey));
  const found = orSay('the cosigned checkpoint is wrong', () => cosignatureOf(theirs, witnessKey));
  if (found === undefined) throw new CertificateError('this witness did not cosign the checkpoint');
  const bytes = readLogFile(join(folder, CHECKPOINT), MAX_CHECKPOINT_BYTES) ?? Buffer.alloc(0);
  const ours = orSay(`the checkpoint of ${folder} is wrong`, () => openCheckpoint(bytes, logKey));
  if (ours.note.text !== theirs.note.text) return false;
  new LogDisk(folder).replace(
    CHECKPOINT,
    Buffer.from(formatCheckpoint(withSignature(ours, found.signature))),
  );
  return true;
}
