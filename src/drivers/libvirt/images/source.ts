import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Fatal } from '../../../ports/errors.ts';
import { HEADER_BYTES, readQcow2Header } from './qcow2.ts';

/** A file that may be a base image. */
export interface ImageSource {
  /** Open for reading. */
  fd: number;
  bytes: number;
  /** Size of the disk in it. */
  diskBytes: number;
  sha256: string;
}

/**
 * Runs `use` with the file, which stays open, so that the upload has the verified content.
 *
 * @throws {Fatal} if it is not an image
 */
export async function* withImageFile<T>(
  path: string,
  use: (source: ImageSource) => AsyncIterable<T>,
): AsyncIterable<T> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: Error) => {
    throw new Fatal(`The file ${path} cannot be read: ${error.message}.`);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Fatal(`${path} is not a file.`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    const header = readQcow2Header(buffer.subarray(0, bytesRead));
    if (header.refused !== undefined) throw new Fatal(`${path} cannot be a base image: ${header.refused}.`);
    const hash = createHash('sha256');
    for await (const part of file.createReadStream({ autoClose: false, start: 0 })) hash.update(part);
    const { diskBytes } = header;
    yield* use({ fd: file.fd, bytes: stat.size, diskBytes, sha256: hash.digest('hex') });
  } finally {
    await file.close();
  }
}
