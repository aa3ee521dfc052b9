const SECTOR = 2048;
const ROOT_AT = 20;

/** A file in the root folder. Its name is in lower case, as Linux shows it. */
export interface IsoFile {
  name: string;
  content: Uint8Array;
}

/**
 * Makes an ISO 9660 image (ECMA-119, level 2, no extensions) with a few files in its root folder, for a NoCloud disk.
 */
export function toIso9660(label: string, files: readonly IsoFile[]): Buffer {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  let next = ROOT_AT + 1;
  const placed = sorted.map(({ name, content }) => {
    const at = next;
    next += Math.max(1, sectors(content.length));
    return { name: name.toUpperCase(), content, at };
  });
  const image = Buffer.alloc(next * SECTOR);
  writeVolume(image, label, next);
  const own = directoryRecord('\0', ROOT_AT, SECTOR, true);
  const parent = directoryRecord('\x01', ROOT_AT, SECTOR, true);
  const entries = placed.map(({ name, content, at }) => directoryRecord(name, at, content.length, false));
  const folder = Buffer.concat([own, parent, ...entries]);
  if (folder.length > SECTOR) throw new Error('too many files for one folder of a NoCloud disk');
  folder.copy(image, ROOT_AT * SECTOR);
  for (const { content, at } of placed) image.set(content, at * SECTOR);
  return image;
}

const sectors = (bytes: number): number => Math.ceil(bytes / SECTOR);

/** Descriptors in sectors 16 and 17; path tables in 18 (little-endian) and 19. */
function writeVolume(image: Buffer, label: string, size: number): void {
  const volume = image.subarray(16 * SECTOR, 17 * SECTOR);
  volume.write('\x01CD001\x01', 0, 'latin1');
  volume.fill(' ', 8, 72, 'latin1');
  volume.write(label, 40, 32, 'latin1');
  both32(volume, 80, size);
  both16(volume, 120, 1);
  both16(volume, 124, 1);
  both16(volume, 128, SECTOR);
  both32(volume, 132, 10);
  volume.writeUInt32LE(18, 140);
  volume.writeUInt32BE(19, 148);
  directoryRecord('\0', ROOT_AT, SECTOR, true).copy(volume, 156);
  volume.fill(' ', 190, 813, 'latin1');
  for (const at of [813, 830, 847, 864]) volume.fill('0', at, at + 16, 'latin1');
  volume[881] = 1;
  image.write('\xffCD001\x01', 17 * SECTOR, 'latin1');
  for (const [sector, bigEndian] of [
    [18, false],
    [19, true],
  ] as const) {
    const table = image.subarray(sector * SECTOR);
    table[0] = 1;
    if (bigEndian) table.writeUInt32BE(ROOT_AT, 2);
    else table.writeUInt32LE(ROOT_AT, 2);
    if (bigEndian) table.writeUInt16BE(1, 6);
    else table.writeUInt16LE(1, 6);
  }
}

function directoryRecord(name: string, at: number, length: number, isFolder: boolean): Buffer {
  const size = 33 + name.length + ((name.length + 1) % 2);
  const record = Buffer.alloc(size);
  record[0] = size;
  both32(record, 2, at);
  both32(record, 10, length);
  // 1970-01-01, so that the same files give the same image.
  record.set([70, 1, 1, 0, 0, 0, 0], 18);
  record[25] = isFolder ? 2 : 0;
  both16(record, 28, 1);
  record[32] = name.length;
  record.write(name, 33, 'latin1');
  return record;
}

function both32(into: Buffer, at: number, value: number): void {
  into.writeUInt32LE(value, at);
  into.writeUInt32BE(value, at + 4);
}

function both16(into: Buffer, at: number, value: number): void {
  into.writeUInt16LE(value, at);
  into.writeUInt16BE(value, at + 2);
}
