import { EMPTY_ROOT, HASH_BYTES, type Hash, nodeHash } from './merkle.ts';
import { hashesAt, TILE_WIDTH, type Tile, tileOf } from './tiles.ts';

/** Levels of the binary tree in one level of tiles. */
const TILE_HEIGHT = 8;

/** Returns the hashes of a tile, one after the other. */
export type ReadTile = (tile: Tile) => Promise<Buffer>;

/**
 * A tree of `size` entries, read from its tiles. It does not trust them: compare what it returns with a signed root.
 * Rejects as `readTile` does.
 */
export class TileTree {
  readonly #size: number;
  readonly #readTile: ReadTile;
  readonly #read = new Map<string, Promise<Buffer>>();

  constructor(size: number, readTile: ReadTile) {
    this.#size = size;
    this.#readTile = readTile;
  }

  async root(): Promise<Hash> {
    return this.#size === 0 ? EMPTY_ROOT : this.#hashOf(0, this.#size);
  }

  /** The hash of an entry, as its tile has it. */
  leaf(index: number): Promise<Hash> {
    return this.#perfect(0, index);
  }

  /** RFC 6962, section 2.1.1: the siblings of an entry, the lowest first. */
  async inclusion(index: number): Promise<Hash[]> {
    const path: Hash[] = [];
    let [from, to] = [0, this.#size];
    while (to - from > 1) {
      const middle = from + splitOf(to - from);
      if (index < middle) {
        path.unshift(await this.#hashOf(middle, to));
        to = middle;
      } else {
        path.unshift(await this.#hashOf(from, middle));
        from = middle;
      }
    }
    return path;
  }

  /** RFC 6962, section 2.1.2: proves that this tree begins with the tree of `earlier` entries. */
  async consistency(earlier: number): Promise<Hash[]> {
    if (earlier === 0 || earlier === this.#size) return [];
    const proof: Hash[] = [];
    let [from, to] = [0, this.#size];
    let isWhole = true;
    while (earlier !== to) {
      const middle = from + splitOf(to - from);
      if (earlier <= middle) {
        proof.unshift(await this.#hashOf(middle, to));
        to = middle;
      } else {
        proof.unshift(await this.#hashOf(from, middle));
        from = middle;
        isWhole = false;
      }
    }
    return isWhole ? proof : [await this.#hashOf(from, to), ...proof];
  }

  /** The root of the entries from `from` up to `to`; `from` is a multiple of a power of two not smaller than their number. */
  async #hashOf(from: number, to: number): Promise<Hash> {
    const count = to - from;
    const split = splitOf(count);
    if (count === 1 || split * 2 === count) return this.#perfect(Math.log2(count), from / count);
    const [left, right] = [await this.#hashOf(from, from + split), await this.#hashOf(from + split, to)];
    return nodeHash(left, right);
  }

  /** The hash of the subtree of 2^height entries with this index. */
  async #perfect(height: number, index: number): Promise<Hash> {
    const level = Math.floor(height / TILE_HEIGHT);
    const count = 2 ** (height % TILE_HEIGHT);
    const first = index * count;
    const tile = await this.#tile(level, Math.floor(first / TILE_WIDTH));
    const start = (first % TILE_WIDTH) * HASH_BYTES;
    let hashes = Array.from({ length: count }, (_, at) =>
      tile.subarray(start + at * HASH_BYTES, start + (at + 1) * HASH_BYTES),
    );
    while (hashes.length > 1) hashes = pairs(hashes);
    return hashes[0] ?? EMPTY_ROOT;
  }

  #tile(level: number, index: number): Promise<Buffer> {
    const key = `${level}/${index}`;
    const known = this.#read.get(key) ?? this.#readTile(tileOf(level, index, this.#size));
    this.#read.set(key, known);
    return known;
  }
}

function pairs(hashes: readonly Hash[]): Hash[] {
  const above: Hash[] = [];
  for (let at = 0; at + 1 < hashes.length; at += 2)
    above.push(nodeHash(hashes[at] as Hash, hashes[at + 1] as Hash));
  return above;
}

/** The largest power of two below `count`; 1 of 1. */
function splitOf(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

/** Builds all tiles of a tree in memory, entry by entry. */
export class GrowingTree {
  /** The hashes of each level of tiles. */
  readonly #levels: Hash[][] = [[]];

  get size(): number {
    return this.#levels[0]?.length ?? 0;
  }

  append(leaf: Hash): void {
    let hash = leaf;
    for (let level = 0; ; level++) {
      const hashes = this.#levels[level] ?? [];
      this.#levels[level] = hashes;
      hashes.push(hash);
      if (hashes.length % TILE_WIDTH !== 0) return;
      let full = hashes.slice(-TILE_WIDTH);
      while (full.length > 1) full = pairs(full);
      hash = full[0] as Hash;
    }
  }

  /** The hashes of a tile, one after the other. */
  tile({ level, index, width }: Tile): Buffer {
    const hashes = this.#levels[level === 'entries' ? 0 : level] ?? [];
    return Buffer.concat(hashes.slice(index * TILE_WIDTH, index * TILE_WIDTH + width));
  }

  /** The tree of its first `size` entries. */
  at(size: number): TileTree {
    return new TileTree(size, async (tile) => this.tile(tile));
  }
}

/** All tiles of hashes in a tree of `size` entries. */
export function* tilesIn(size: number): Generator<Tile> {
  for (let level = 0; hashesAt(level, size) > 0; level++)
    for (let index = 0; index * TILE_WIDTH < hashesAt(level, size); index++) yield tileOf(level, index, size);
}
