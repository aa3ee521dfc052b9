import { createHash } from 'node:crypto';

/** A Merkle tree hash: 32 bytes. */
export type Hash = Buffer;

export const HASH_BYTES = 32;

/** The root of a tree without leaves. */
export const EMPTY_ROOT: Hash = createHash('sha256').digest();

/** RFC 6962, section 2.1: the hash of an entry. */
export function leafHash(entry: Uint8Array): Hash {
  return createHash('sha256').update(LEAF).update(entry).digest();
}

/** RFC 6962, section 2.1: the hash of two subtrees. */
export function nodeHash(left: Hash, right: Hash): Hash {
  return createHash('sha256').update(NODE).update(left).update(right).digest();
}

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

/** Whether `path` proves that `leaf` is entry `index` of the tree of `size` entries (RFC 9162, section 2.1.3.2). */
export function isIncluded(
  leaf: Hash,
  index: number,
  path: readonly Hash[],
  { size, root }: { size: number; root: Hash },
): boolean {
  if (index >= size) return false;
  let [node, last, hash] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      hash = nodeHash(sibling, hash);
      if (!isOdd(node)) [node, last] = aboveLeftEdges(node, last);
    } else {
      hash = nodeHash(hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && hash.equals(root);
}

interface Tree {
  size: number;
  root: Hash;
}

/** Whether `proof` proves that the later tree begins with all entries of the earlier one (RFC 9162, section 2.1.4.2). */
export function isConsistent(earlier: Tree, later: Tree, proof: readonly Hash[]): boolean {
  if (earlier.size > later.size) return false;
  if (earlier.size === later.size) return proof.length === 0 && earlier.root.equals(later.root);
  if (earlier.size === 0) return proof.length === 0 && earlier.root.equals(EMPTY_ROOT);
  const isPerfect = 2 ** Math.round(Math.log2(earlier.size)) === earlier.size;
  const [first, ...rest] = isPerfect ? [earlier.root, ...proof] : proof;
  if (first === undefined) return false;
  let [node, last] = [earlier.size - 1, later.size - 1];
  while (isOdd(node)) [node, last] = [half(node), half(last)];
  let [before, now] = [first, first];
  for (const sibling of rest) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      before = nodeHash(sibling, before);
      now = nodeHash(sibling, now);
      if (!isOdd(node)) [node, last] = aboveLeftEdges(node, last);
    } else {
      now = nodeHash(now, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && before.equals(earlier.root) && now.equals(later.root);
}

/** Goes up while the node is a left child; the caller goes up one more. */
function aboveLeftEdges(node: number, last: number): [number, number] {
  let at: [number, number] = [node, last];
  while (!isOdd(at[0]) && at[0] !== 0) at = [half(at[0]), half(at[1])];
  return at;
}

const isOdd = (n: number): boolean => n % 2 === 1;
/** No shift: sizes may exceed 32 bits. */
const half = (n: number): number => Math.floor(n / 2);
