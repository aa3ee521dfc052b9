import { CertificateError } from '../certificate/sign.ts';
import { TILE_WIDTH } from './tiles.ts';

/** The length of an entry is written in two bytes. */
export const MAX_ENTRY_BYTES = 0xffff;
const LENGTH_BYTES = 2;
export const MAX_BUNDLE_BYTES = TILE_WIDTH * (LENGTH_BYTES + MAX_ENTRY_BYTES);

/** C2SP tlog-tiles: each entry after its length, big-endian. */
export function toBundle(entries: readonly Buffer[]): Buffer {
  return Buffer.concat(
    entries.flatMap((entry) => {
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt16BE(entry.length);
      return [length, entry];
    }),
  );
}

/** The first `count` entries of a bundle. @throws {CertificateError} if it has fewer or is cut short */
export function fromBundle(bundle: Buffer, count: number): Buffer[] {
  const entries: Buffer[] = [];
  for (let at = 0; entries.length < count; ) {
    const length = at + LENGTH_BYTES > bundle.length ? Number.NaN : bundle.readUInt16BE(at);
    const end = at + LENGTH_BYTES + length;
    if (!(end <= bundle.length)) throw new CertificateError('it is cut short');
    entries.push(bundle.subarray(at + LENGTH_BYTES, end));
    at = end;
  }
  return entries;
}
