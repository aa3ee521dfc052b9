import type { CreateDeployment } from '../contract/deployment.ts';
import { invalid, invalidRequest } from '../contract/errors.ts';
import type { Caller } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { type ParsedPublicKey, parsePublicKey } from '../ssh-keys/parse-public-key.ts';
import { ownSshKey } from '../ssh-keys/ssh-keys.ts';

/** The one key that a create names (M: Create body, "one of the two"). */
export type RequestedKey = { savedId: string } | { inline: ParsedPublicKey };

/** @throws {ApiError} VALIDATION_ERROR where there is none, where there are two, and for a key that is none */
export function toRequestedKey({ sshKeyId, ssh_public_key: inline }: CreateDeployment): RequestedKey {
  if ((sshKeyId === undefined) === (inline === undefined))
    throw invalidRequest(
      ['sshKeyId', 'ssh_public_key'].map((path) => ({ path, message: 'expected exactly one of the two' })),
    );
  if (sshKeyId !== undefined) return { savedId: sshKeyId };
  return { inline: parsePublicKey('ssh_public_key', inline ?? '') };
}

/**
 * The saved key, or a temporary one that is still to be inserted; it goes when its deployment ends.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, or VALIDATION_ERROR for another deployment's temporary key
 */
export async function toLaunchKey(
  read: Pick<Reader, 'sshKeys' | 'teams'>,
  caller: Caller,
  requested: RequestedKey,
  temporary: { id: string; teamId: string; createdAt: number },
): Promise<SshKeyRecord> {
  if ('savedId' in requested) {
    const saved = await ownSshKey(read, caller, requested.savedId);
    if (saved.isTemporary) throw invalid('sshKeyId', 'is the temporary key of another deployment');
    return saved;
  }
  const { publicKey, fingerprint, comment } = requested.inline;
  return {
    ...temporary,
    userId: caller.userId,
    name: comment === '' ? 'Inline key' : comment,
    publicKey,
    fingerprint,
    isTemporary: true,
  };
}
