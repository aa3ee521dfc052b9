import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { CertificateError, rawKeyOf } from '../certificate/sign.ts';
import { audit } from './audit.ts';
import { fromBundle, MAX_BUNDLE_BYTES, toBundle } from './bundle.ts';
import { type Checkpoint, formatCheckpoint, openCheckpoint, signCheckpoint } from './checkpoint.ts';
import { type Entry, mayBeEntryOf, parseEntry, tryEntry } from './entry.ts';
import { CHECKPOINT, Log, MAX_CHECKPOINT_BYTES, orSay } from './log.ts';
import type { LogDisk } from './log-disk.ts';
import { folderReader, LogUnavailable, readLogFile } from './log-reader.ts';
import { EMPTY_ROOT, leafHash } from './merkle.ts';
import { isKeyName } from './note.ts';
import type { LogProof } from './proof.ts';
import { type GrowingTree, tilesIn } from './tile-tree.ts';
import { partialsPath, TILE_WIDTH, type Tile, tileOf, tilePath, tilesOfLastEntry } from './tiles.ts';

/** Appends to a log in a folder, which is locked. */
export class LogWriter {
  readonly #disk: LogDisk;
  readonly #key: KeyObject;
  #checkpoint: Checkpoint;
  readonly #tree: GrowingTree;
  /** The entries of the last bundle. */
  #last: Buffer[];
  /** The entries that may be looked for, by the digest of their report. */
  readonly #known = new Map<string, { index: number; bytes: Buffer }>();

  private constructor(
    disk: LogDisk,
    key: KeyObject,
    checkpoint: Checkpoint,
    tree: GrowingTree,
    last: Buffer[],
  ) {
    this.#disk = disk;
    this.#key = key;
    this.#checkpoint = checkpoint;
    this.#tree = tree;
    this.#last = last;
  }

  /**
   * Reads the whole log, and demands that it is what the key signed.
   * @throws {CertificateError} @throws {LogUnavailable}
   */
  static async open(
    disk: LogDisk,
    key: KeyObject,
    origin: string | undefined,
    wantedEntry: Entry,
  ): Promise<LogWriter> {
    const checkpoint = readCheckpoint(disk.folder, key, origin);
    const last: Buffer[] = [];
    const { tree, wanted } = await audit(new Log(folderReader(disk.folder), checkpoint), (bytes) => {
      if (last.length === TILE_WIDTH) last.length = 0;
      last.push(bytes);
      return mayBeEntryOf(bytes, wantedEntry.report);
    });
    // A tile that was lost is written again, and one that was changed is refused.
    for (const tile of tilesIn(tree.size)) disk.create(tilePath(tile), tree.tile(tile));
    const writer = new LogWriter(disk, key, checkpoint, tree, last);
    for (const { index, bytes } of wanted) {
      const entry = tryEntry(bytes);
      if (entry !== undefined) writer.#known.set(entry.digest, { index, bytes });
    }
    return writer;
  }

  /**
   * The entry that an earlier publish wrote before it ended without a checkpoint.
   * @throws {LogUnavailable} if there is more than one: then the checkpoint is not the newest
   */
  unfinished(): Entry | undefined {
    const size = this.#tree.size;
    const full = (Math.floor(size / TILE_WIDTH) + 1) * TILE_WIDTH;
    const [next, ...beyond] = [size + 1, size + 2, ...(size + 1 < full ? [full] : [])].map((some) =>
      this.#read(lastBundle(some)),
    );
    if (beyond.some((bytes) => bytes !== undefined))
      throw new LogUnavailable(
        `${this.#disk.folder} has more entries than its checkpoint says: the checkpoint is an old one, or was lost; restore the newest`,
      );
    if (next === undefined) return undefined;
    const path = tilePath(lastBundle(size + 1));
    const last = this.#entriesBefore(size + 1);
    const added = orSay(path, () => fromBundle(next, last.length + 1)).at(-1) as Buffer;
    if (!next.equals(toBundle([...last, added])))
      throw new CertificateError(
        `${path}, which the checkpoint does not count yet, does not continue the log`,
      );
    return orSay(`${path}, which the checkpoint does not count yet, ends in a wrong entry`, () =>
      parseEntry(added),
    );
  }

  /** The index of an entry that the log has. */
  find({ digest }: Entry): number | undefined {
    return this.#known.get(digest)?.index;
  }

  /** Writes the entry, then the tiles, and last the checkpoint. Returns the index. @throws {LogUnavailable} */
  async append({ bytes, digest }: Entry): Promise<number> {
    const index = this.#tree.size;
    const last = [...this.#entriesBefore(index + 1), bytes];
    this.#disk.create(tilePath(lastBundle(index + 1)), toBundle(last));
    this.#tree.append(leafHash(bytes));
    for (const tile of tilesOfLastEntry(index + 1)) this.#disk.create(tilePath(tile), this.#tree.tile(tile));
    const root = await this.#tree.at(index + 1).root();
    this.#checkpoint = signCheckpoint(this.#checkpoint.origin, index + 1, root, this.#key);
    this.#disk.replace(CHECKPOINT, Buffer.from(formatCheckpoint(this.#checkpoint)));
    this.#last = last;
    this.#known.set(digest, { index, bytes });
    return index;
  }

  /** Removes the partial tiles before a full one. @throws {LogUnavailable} */
  prune(): void {
    for (const tile of tilesIn(this.#tree.size)) {
      if (tile.width < TILE_WIDTH) continue;
      this.#disk.removeFolder(partialsPath(tile));
      if (tile.level === 0) this.#disk.removeFolder(partialsPath({ ...tile, level: 'entries' }));
    }
  }

  /** Proves an entry that was found or appended. */
  async prove(index: number): Promise<LogProof> {
    const entry = [...this.#known.values()].find((known) => known.index === index)?.bytes;
    if (entry === undefined) throw new Error(`entry ${index} was not looked for`);
    const path = await this.#tree.at(this.#tree.size).inclusion(index);
    return { index, entry, path, checkpoint: this.#checkpoint };
  }

  /** The entries that the bundle of the last of `size` entries has before it. */
  #entriesBefore(size: number): Buffer[] {
    return size % TILE_WIDTH === 1 ? [] : this.#last;
  }

  #read(tile: Tile): Buffer | undefined {
    return readLogFile(join(this.#disk.folder, tilePath(tile)), MAX_BUNDLE_BYTES);
  }
}

/** The bundle of the last of `size` entries. */
const lastBundle = (size: number): Tile => tileOf('entries', Math.floor((size - 1) / TILE_WIDTH), size);

/** The checkpoint of the folder, or of a new log. */
function readCheckpoint(folder: string, key: KeyObject, origin: string | undefined): Checkpoint {
  const bytes = readLogFile(join(folder, CHECKPOINT), MAX_CHECKPOINT_BYTES);
  if (bytes === undefined) return emptyCheckpoint(folder, origin);
  const named = { bytes: rawKeyOf(key), ...(origin !== undefined && { name: origin }) };
  return orSay(`the checkpoint of ${folder} is wrong`, () => openCheckpoint(bytes, named));
}

function emptyCheckpoint(folder: string, origin: string | undefined): Checkpoint {
  if (origin === undefined)
    throw new LogUnavailable(
      `${folder} has no checkpoint: if the log is new, name it with --origin, such as log.example/berth`,
    );
  if (!isKeyName(origin))
    throw new LogUnavailable('the name of a log has no space, no plus and no invisible character');
  return { origin, size: 0, root: EMPTY_ROOT, note: { text: '', signatures: [] } };
}
