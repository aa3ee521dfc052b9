import { describe, expect, it } from 'vitest';
import { tilesIn } from './tile-tree.ts';
import { hashesAt, TILE_WIDTH, tilePath, tilesOfLastEntry } from './tiles.ts';

describe('a tile', () => {
  it.each([
    [{ level: 0, index: 0, width: TILE_WIDTH }, 'tile/0/000'],
    [{ level: 3, index: 1_234_067, width: TILE_WIDTH }, 'tile/3/x001/x234/067'],
    [{ level: 0, index: 999, width: 1 }, 'tile/0/999.p/1'],
    [{ level: 0, index: 1000, width: 255 }, 'tile/0/x001/000.p/255'],
    [{ level: 'entries', index: 273, width: 112 }, 'tile/entries/273.p/112'],
  ] as const)('has the path of tlog-tiles: %o', (tile, path) => {
    expect(tilePath(tile)).toBe(path);
  });

  it('of 70,000 entries is one of those that tlog-tiles counts', () => {
    const tiles = [...tilesIn(70_000)];
    const of = (wanted: number): string[] =>
      tiles.filter(({ level }) => level === wanted).map(({ width }) => String(width));
    expect(of(0)).toEqual([...Array(273).fill('256'), '112']);
    expect([of(1), of(2), of(3)]).toEqual([['256', '17'], ['1'], []]);
    expect([...tilesIn(256)].map(tilePath)).toEqual(['tile/0/000', 'tile/1/000.p/1']);
    expect([...tilesIn(0)]).toEqual([]);
  });

  it('is written with the entry that gives it another width', () => {
    expect(tilesOfLastEntry(1).map(tilePath)).toEqual(['tile/0/000.p/1']);
    expect(tilesOfLastEntry(256).map(tilePath)).toEqual(['tile/0/000', 'tile/1/000.p/1']);
    expect(tilesOfLastEntry(65_536).map(tilePath)).toEqual(['tile/0/255', 'tile/1/000', 'tile/2/000.p/1']);
    const written = new Set(
      Array.from({ length: 700 }, (_, n) => tilesOfLastEntry(n + 1).map(tilePath)).flat(),
    );
    for (const tile of tilesIn(700)) expect(written).toContain(tilePath(tile));
    expect(hashesAt(1, 700)).toBe(2);
  });
});
