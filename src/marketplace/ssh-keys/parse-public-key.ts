import { parseSshPublicKey, toAuthorizedKeysLine } from '../../contract/ssh-key.ts';
import { invalid } from '../contract/errors.ts';
import { fingerprintOf } from './fingerprint.ts';

export interface ParsedPublicKey {
  /** One authorized_keys line. */
  publicKey: string;
  fingerprint: string;
  comment: string;
}

/**
 * The public key in a field of a request (M: "ECDSA and FIDO security key types are accepted on every provider").
 *
 * @throws {ApiError} VALIDATION_ERROR, without a character of the key data
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
