import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EMPTY_ROOT, type Hash, isConsistent, isIncluded, leafHash, nodeHash } from './merkle.ts';
import { GrowingTree } from './tile-tree.ts';

/** RFC 6962, section 2.1, word for word. */
function naiveRoot(leaves: readonly Hash[]): Hash {
  if (leaves.length < 2) return leaves[0] ?? EMPTY_ROOT;
  const k = 2 ** (Math.ceil(Math.log2(leaves.length)) - 1);
  return nodeHash(naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)));
}

const leaves = Array.from({ length: 65_540 }, (_, n) => leafHash(Buffer.from(String(n))));
const grown = new GrowingTree();
const MOST = 300;
for (const leaf of leaves) grown.append(leaf);

/** Where a tile of level 2 begins. */
const EDGES = [65_535, 65_536, 65_537];

const sizes = fc.oneof(fc.integer({ min: 1, max: MOST }), fc.constantFrom(...EDGES));
const roots = new Map(
  [...Array(MOST + 1).keys(), ...EDGES].map((size) => [size, naiveRoot(leaves.slice(0, size))]),
);
const rootOf = (size: number): Hash => roots.get(size) as Hash;
const flipped = (hash: Hash): Hash => {
  const other = Buffer.from(hash);
  other.writeUInt8(other.readUInt8(7) ^ 1, 7);
  return other;
};

describe('RFC 6962 test vectors', () => {
  /** The eight entries of the Certificate Transparency reference implementation, and the roots of their trees. */
  const entries = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ].map((hex) => Buffer.from(hex, 'hex'));
  const expected = [
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];

  it.each(expected.map((root, size) => ({ size, root })))('root of $size entries', async ({ size, root }) => {
    const tree = new GrowingTree();
    for (const entry of entries.slice(0, size)) tree.append(leafHash(entry));
    expect((await tree.at(size).root()).toString('hex')).toBe(root);
  });

  it('inclusion of entry 5 in 8, and consistency of 6 with 8', async () => {
    const tree = new GrowingTree();
    for (const entry of entries) tree.append(leafHash(entry));
    const hex = (hashes: readonly Hash[]): string[] => hashes.map((hash) => hash.toString('hex'));
    expect(hex(await tree.at(8).inclusion(5))).toEqual([
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
    expect(hex(await tree.at(8).consistency(6))).toEqual([
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });
});

describe('a tree of tiles', () => {
  it('has the root of RFC 6962 at each size up to 300 and at the edges of tiles', async () => {
    for (const size of [...Array(MOST + 1).keys(), ...EDGES])
      expect((await grown.at(size).root()).equals(rootOf(size)), `size ${size}`).toBe(true);
  });

  it('proves each entry, and no other entry, index, size or path', async () => {
    const property = fc.asyncProperty(sizes, fc.nat(), fc.nat(), async (size, some, other) => {
      const [index, tree] = [some % size, { size, root: rootOf(size) }];
      const path = await grown.at(size).inclusion(index);
      const leaf = leaves[index] as Hash;
      expect(isIncluded(leaf, index, path, tree)).toBe(true);
      expect(isIncluded(flipped(leaf), index, path, tree)).toBe(false);
      expect(isIncluded(leaf, index, path, { size, root: flipped(tree.root) })).toBe(false);
      expect(isIncluded(leaf, size, path, tree)).toBe(false);
      expect(isIncluded(leaf, index, [...path, leaf], tree)).toBe(false);
      if (path.length > 0) {
        const at = other % path.length;
        expect(isIncluded(leaf, index, path.with(at, flipped(path[at] as Hash)), tree)).toBe(false);
        expect(isIncluded(leaf, index, path.slice(0, -1), tree)).toBe(false);
        expect(isIncluded(leaf, (index + 1 + (other % (size - 1))) % size, path, tree)).toBe(false);
      }
    });
    await fc.assert(property, { numRuns: 100 });
  });

  it('proves that it begins with each earlier tree, and with no other', async () => {
    const property = fc.asyncProperty(sizes, sizes, fc.nat(), async (a, b, some) => {
      const [m, n] = [Math.min(a, b), Math.max(a, b)];
      const [earlier, later] = [
        { size: m, root: rootOf(m) },
        { size: n, root: rootOf(n) },
      ];
      const proof = await grown.at(n).consistency(m);
      expect(isConsistent(earlier, later, proof)).toBe(true);
      expect(isConsistent({ size: m, root: flipped(earlier.root) }, later, proof)).toBe(false);
      expect(isConsistent(earlier, { size: n, root: flipped(later.root) }, proof)).toBe(false);
      expect(isConsistent(earlier, later, [...proof, earlier.root])).toBe(false);
      if (proof.length > 0) {
        const at = some % proof.length;
        expect(isConsistent(earlier, later, proof.with(at, flipped(proof[at] as Hash)))).toBe(false);
        expect(isConsistent(earlier, later, proof.slice(1))).toBe(false);
      }
      if (m < n) expect(isConsistent(later, earlier, proof)).toBe(false);
    });
    await fc.assert(property, { numRuns: 100 });
  });

  it('proves nothing by a root that is given for its own entry or for another size', () => {
    const [root] = leaves as [Hash, ...Hash[]];
    expect(isIncluded(root, 0, [], { size: 1, root })).toBe(true);
    expect(isIncluded(root, 0, [], { size: 2, root })).toBe(false);
    expect(isConsistent({ size: 2, root }, { size: 5, root }, [])).toBe(false);
  });

  it('finds an entry that was changed before the end of the earlier tree', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 2, max: 300 }),
      fc.nat(),
      fc.nat(),
      async (n, x, y) => {
        const m = 1 + (x % n);
        const edited = new GrowingTree();
        const changed = y % m;
        for (const [index, leaf] of leaves.slice(0, n).entries())
          edited.append(index === changed ? flipped(leaf) : leaf);
        const now = { size: n, root: await edited.at(n).root() };
        const proof = await edited.at(n).consistency(m);
        expect(isConsistent({ size: m, root: rootOf(m) }, now, proof)).toBe(false);
      },
    );
    await fc.assert(property, { numRuns: 50 });
  });
});
