import { createHash } from 'node:crypto';
import { parseSshPublicKey, type SshPublicKey, toAuthorizedKeysLine } from '../../contract/ssh-key.ts';
import { invalid } from '../contract/errors.ts';

export interface ParsedPublicKey {
  /** One line of an authorized_keys file. */
  publicKey: string;
  fingerprint: string;
  comment: string;
}

/**
 * M: "ECDSA and FIDO security key types are accepted".
 * @throws {ApiError} VALIDATION_ERROR; its text has no key data
 */
export function parsePublicKey(path: string, text: string): ParsedPublicKey {
  const parsed = parseSshPublicKey(text);
  if ('problem' in parsed) throw invalid(path, parsed.problem);
  const { key } = parsed;
  return {
    publicKey: toAuthorizedKeysLine(key),
    fingerprint: fingerprintOf(key),
    comment: key.comment,
  };
}

/** The fingerprint `SHA256:…`, as `ssh-keygen -l` prints it: of the key data, in base64 without padding. */
function fingerprintOf({ base64 }: SshPublicKey): string {
  const digest = createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}
