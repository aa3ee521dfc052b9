import { CertificateError } from '../certificate/sign.ts';
import { fromBundle, MAX_BUNDLE_BYTES } from './bundle.ts';
import { type Checkpoint, openCheckpoint } from './checkpoint.ts';
import { type LogReader, LogUnavailable } from './log-reader.ts';
import { HASH_BYTES, isConsistent, isIncluded, leafHash } from './merkle.ts';
import type { NoteKey } from './note.ts';
import { TileTree } from './tile-tree.ts';
import { FULL_TILE_BYTES, TILE_WIDTH, type Tile, tileOf, tilePath } from './tiles.ts';

export const CHECKPOINT = 'checkpoint';
export const MAX_CHECKPOINT_BYTES = 100_000;

/** A log at one checkpoint. Its files are not trusted: all that it returns was proved by the root that the log signed. */
export class Log {
  readonly #reader: LogReader;
  readonly checkpoint: Checkpoint;
  readonly #tree: TileTree;

  constructor(reader: LogReader, checkpoint: Checkpoint) {
    this.#reader = reader;
    this.checkpoint = checkpoint;
    this.#tree = new TileTree(checkpoint.size, async (tile) => {
      const bytes = await this.#readTile(tile, FULL_TILE_BYTES);
      if (bytes.length < tile.width * HASH_BYTES)
        throw new CertificateError(`${tilePath(tile)} of the log is cut short`);
      return bytes.subarray(0, tile.width * HASH_BYTES);
    });
  }

  /**
   * Proves that the log still has everything that it had at an earlier checkpoint.
   * @throws {CertificateError} if it cannot be proved
   */
  async proveConsistency(earlier: Checkpoint): Promise<void> {
    const now = this.checkpoint;
    if (earlier.origin !== now.origin)
      throw new CertificateError(
        `the log is ${now.origin}, and the checkpoint seen before is of ${earlier.origin}`,
      );
    if (now.size < earlier.size)
      throw new CertificateError(
        `the log was rolled back: it has ${now.size} entries, and it had signed ${earlier.size}`,
      );
    if (now.size === earlier.size) {
      if (now.root.equals(earlier.root)) return;
      throw new CertificateError(
        `the log shows different readers different entries (split view): it signed two roots for ${now.size} entries`,
      );
    }
    if (!isConsistent(earlier, now, await this.#tree.consistency(earlier.size)))
      throw new CertificateError(
        `the log was rewritten, or shows different readers different entries (split view): its ${now.size} entries do not begin with the ${earlier.size} that it had signed`,
      );
  }

  /** The path from an entry to the root. @throws {CertificateError} if the log does not prove it */
  async proveInclusion(index: number, entry: Buffer): Promise<Buffer[]> {
    const { size } = this.checkpoint;
    if (index >= size) throw new CertificateError(`the log has ${size} entries, and no entry ${index}`);
    const path = await this.#tree.inclusion(index);
    if (!isIncluded(leafHash(entry), index, path, this.checkpoint))
      throw new CertificateError(
        `the log does not prove entry ${index}: by its tiles it is not in the tree of ${size} entries that the log signed`,
      );
    return path;
  }

  /** All entries, oldest first, unproved. @throws {CertificateError} if one is missing */
  async *entries(): AsyncGenerator<Buffer> {
    const { size } = this.checkpoint;
    for (let index = 0; index * TILE_WIDTH < size; index++) yield* await this.#bundle(index);
  }

  async #bundle(index: number): Promise<Buffer[]> {
    const tile = tileOf('entries', index, this.checkpoint.size);
    const bytes = await this.#readTile(tile, MAX_BUNDLE_BYTES);
    try {
      return fromBundle(bytes, tile.width);
    } catch (error) {
      throw error instanceof CertificateError
        ? new CertificateError(`${tilePath(tile)} of the log cannot be read: ${error.message}`)
        : error;
    }
  }

  /** A partial tile may be removed once the full one is there. */
  async #readTile(tile: Tile, maxBytes: number): Promise<Buffer> {
    const read =
      (await this.#reader.read(tilePath(tile), maxBytes)) ??
      (await this.#reader.read(tilePath({ ...tile, width: TILE_WIDTH }), maxBytes));
    if (read !== undefined) return read;
    throw new CertificateError(
      `the log has no ${tilePath(tile)}, without which it does not show the ${this.checkpoint.size} entries that it signed`,
    );
  }
}

/** The newest checkpoint of a log. @throws {CertificateError} @throws {LogUnavailable} */
export async function openLog(reader: LogReader, key: NoteKey): Promise<Log> {
  const bytes = await reader.read(CHECKPOINT, MAX_CHECKPOINT_BYTES);
  if (bytes === undefined) throw new LogUnavailable(`${reader.place} has no checkpoint: it is not a log`);
  return new Log(
    reader,
    orSay('the checkpoint of the log is wrong', () => openCheckpoint(bytes, key)),
  );
}

/** Says what an error is about. */
export function orSay<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CertificateError ? new CertificateError(`${what}: ${error.message}`) : error;
  }
}
