import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Fatal } from '../../../ports/errors.ts';

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

const MAGIC = 0x5146_49fb;
/** Header of version 3, with its feature fields. */
const HEADER_BYTES = 104;
/** Incompatible features that are allowed: the compression type and extended L2 entries. */
const HARMLESS_FEATURES = 0b1_1000n;

/**
 * Reads the disk size from a qcow2 header, or says why it cannot be a base image. QEMU would open a backing file or
 * external data file named in the image: another tenant's disk, or a file of the host.
 */
function readQcow2Header(header: Buffer): { diskBytes: number; refused?: never } | { refused: string } {
  if (header.length < HEADER_BYTES || header.readUInt32BE(0) !== MAGIC)
    return { refused: 'it is not a qcow2 file; `qemu-img convert -O qcow2` converts other formats' };
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return { refused: `its qcow2 version ${version} is not supported` };
  if (header.readBigUInt64BE(8) !== 0n)
    return { refused: 'it has a backing file; `qemu-img convert -O qcow2` merges both into one file' };
  if (header.readUInt32BE(32) !== 0) return { refused: 'it is encrypted' };
  const features = version === 2 ? 0n : header.readBigUInt64BE(72);
  if ((features & 0b100n) !== 0n) return { refused: 'its data is in an external file' };
  if ((features & ~HARMLESS_FEATURES) !== 0n)
    return {
      refused:
        'it was not closed properly, is damaged, or needs a newer Berth; `qemu-img check -r all` may repair it',
    };
  const diskBytes = Number(header.readBigUInt64BE(24));
  return diskBytes === 0 ? { refused: 'its disk is empty' } : { diskBytes };
}
