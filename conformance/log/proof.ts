import { CertificateError, fromBase64 } from '../certificate/sign.ts';
import { MAX_ENTRY_BYTES } from './bundle.ts';
import { type Checkpoint, formatCheckpoint, openCheckpoint } from './checkpoint.ts';
import { HASH_BYTES, type Hash, isIncluded, leafHash } from './merkle.ts';
import type { NoteKey } from './note.ts';

const HEADER = 'c2sp.org/tlog-proof@v1';
const MAX_PROOF_BYTES = 300_000;

/** C2SP tlog-proof: proves without the log that an entry was in it. The extra data is the entry itself. */
export interface LogProof {
  index: number;
  entry: Buffer;
  /** From the entry's sibling up to below the root. */
  path: Hash[];
  checkpoint: Checkpoint;
}

export function formatProof({ index, entry, path, checkpoint }: LogProof): string {
  const hashes = path.map((hash) => `${hash.toString('base64')}\n`).join('');
  return `${HEADER}\nextra ${entry.toString('base64')}\nindex ${index}\n${hashes}\n${formatCheckpoint(checkpoint)}`;
}

/** Reads a proof, and proves by it that the entry was in the log of this key. @throws {CertificateError} */
export function openProof(bytes: Buffer, key: NoteKey): LogProof {
  if (bytes.length > MAX_PROOF_BYTES)
    throw new CertificateError(`it is larger than ${MAX_PROOF_BYTES} bytes`);
  const text = bytes.toString('utf8');
  const [, base64 = '', digits = '', hashes = '', note = ''] =
    /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9]\d{0,15})\n((?:\S+\n)*)\n([\s\S]+)$/.exec(text) ??
    [];
  const [entry, index] = [fromBase64(base64), Number(digits)];
  const path = hashes.split('\n').slice(0, -1).map(fromBase64);
  if (
    entry === undefined ||
    entry.length > MAX_ENTRY_BYTES ||
    !path.every((hash) => hash?.length === HASH_BYTES)
  )
    throw new CertificateError('it is not a proof that --save-proof wrote');
  const checkpoint = openCheckpoint(Buffer.from(note), key);
  if (!isIncluded(leafHash(entry), index, path as Hash[], checkpoint))
    throw new CertificateError(`it does not prove that entry ${index} is in the log`);
  return { index, entry, path: path as Hash[], checkpoint };
}
