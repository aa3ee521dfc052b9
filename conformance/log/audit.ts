import { CertificateError } from '../certificate/sign.ts';
import type { Log } from './log.ts';
import { leafHash } from './merkle.ts';
import { GrowingTree } from './tile-tree.ts';

export interface IndexedEntry {
  index: number;
  bytes: Buffer;
}

/**
 * Reads all entries of a log, and proves that they are those of the root that the log signed. Returns the tree, and the
 * entries that are wanted. @throws {CertificateError} if an entry is missing or was changed
 */
export async function audit(
  log: Log,
  isWanted: (bytes: Buffer) => boolean,
): Promise<{ tree: GrowingTree; wanted: IndexedEntry[] }> {
  const { size, root } = log.checkpoint;
  const tree = new GrowingTree();
  const wanted: IndexedEntry[] = [];
  for await (const bytes of log.entries()) {
    if (isWanted(bytes)) wanted.push({ index: tree.size, bytes });
    tree.append(leafHash(bytes));
  }
  if (!root.equals(await tree.at(size).root()))
    throw new CertificateError(
      `an entry of the log was changed or removed: its ${size} entries do not give the root that it signed`,
    );
  return { tree, wanted };
}
