import { basename, dirname, resolve } from 'node:path';
import { CertificateError } from '../certificate/sign.ts';
import { type Checkpoint, formatCheckpoint, openCheckpoint } from './checkpoint.ts';
import { type Log, MAX_CHECKPOINT_BYTES, orSay } from './log.ts';
import { LogDisk } from './log-disk.ts';
import { readLogFile } from './log-reader.ts';
import type { NoteKey } from './note.ts';

/** Reads the checkpoint in a state file. Undefined if the file does not exist. @throws {CertificateError} @throws {LogUnavailable} */
function readState(path: string, key: NoteKey): Checkpoint | undefined {
  const bytes = readLogFile(path, MAX_CHECKPOINT_BYTES);
  if (bytes === undefined) return undefined;
  return orSay(`${path}, the checkpoint seen before, is wrong`, () => openCheckpoint(bytes, key));
}

/** Remembers a checkpoint for the next time. @throws {LogUnavailable} */
export function writeState(path: string, checkpoint: Checkpoint): void {
  const [folder, name] = [dirname(resolve(path)), basename(path)];
  const disk = new LogDisk(folder, { unfinished: `${name}.unfinished` });
  disk.replace(name, Buffer.from(formatCheckpoint(checkpoint)));
}

/**
 * Proves that the log still has all that it had at the checkpoint of the state file. If not, the new checkpoint is kept
 * beside that file: the two are the proof.
 * @throws {CertificateError} @throws {LogUnavailable}
 */
export async function compareWithState(
  path: string,
  log: Log,
  key: NoteKey,
): Promise<Checkpoint | undefined> {
  const earlier = readState(path, key);
  if (earlier === undefined) return undefined;
  try {
    await log.proveConsistency(earlier);
    return earlier;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    const conflict = `${path}.conflict`;
    writeState(conflict, log.checkpoint);
    throw new CertificateError(
      `${error.message}. The log signed both ${path} and ${conflict}: keep them, they are the proof`,
    );
  }
}
