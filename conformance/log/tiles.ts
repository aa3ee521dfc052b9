import { HASH_BYTES } from './merkle.ts';

/** Hashes in a full tile, and entries in a full bundle. */
export const TILE_WIDTH = 256;
export const FULL_TILE_BYTES = TILE_WIDTH * HASH_BYTES;

/** A tile of hashes, or with level `entries` a bundle of entries. */
export interface Tile {
  level: number | 'entries';
  /** The index of the tile in its level. */
  index: number;
  /** 256 if it is full, otherwise 1 to 255. */
  width: number;
}

/** C2SP tlog-tiles: the path of a tile below the log's folder or URL. */
export function tilePath({ level, index, width }: Tile): string {
  return `tile/${level}/${tileNumber(index)}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** The folder of the partial tiles that came before the full one. */
export function partialsPath({ level, index }: Tile): string {
  return `tile/${level}/${tileNumber(index)}.p`;
}

/** C2SP tlog-tiles: groups of three digits, all but the last with an `x` in front. */
function tileNumber(index: number): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) ?? [];
  return groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
}

/** Number of hashes that a tree of `size` entries has at a level of tiles. */
export function hashesAt(level: number, size: number): number {
  return Math.floor(size / TILE_WIDTH ** level);
}

/** The tile in a tree of `size` entries, as wide as it is there. */
export function tileOf(level: number | 'entries', index: number, size: number): Tile {
  const hashes = hashesAt(level === 'entries' ? 0 : level, size);
  return { level, index, width: Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH) };
}

/** The last tile of each level that the tree of `size` entries has and the tree before its last entry did not have. */
export function tilesOfLastEntry(size: number): Tile[] {
  const tiles: Tile[] = [];
  for (let level = 0; hashesAt(level, size) > hashesAt(level, size - 1); level++)
    tiles.push(tileOf(level, Math.floor((hashesAt(level, size) - 1) / TILE_WIDTH), size));
  return tiles;
}
