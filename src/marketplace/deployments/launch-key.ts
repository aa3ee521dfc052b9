import type { CreateDeployment } from '../contract/deployment.ts';
import { invalid, invalidRequest } from '../contract/errors.ts';
import type { Caller } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { type ParsedPublicKey, parsePublicKey } from '../ssh-keys/parse-public-key.ts';
import { ownSshKey } from '../ssh-keys/ssh-keys.ts';

/** The one SSH key of a create (M: Create body, "one of the two"). */
export type RequestedKey = { savedId: string } | { inline: ParsedPublicKey };

/** @throws {ApiError} VALIDATION_ERROR if there is no key, if there are two, or if the inline key is invalid */
export function toRequestedKey({ sshKeyId, ssh_public_key: inline }: CreateDeployment): RequestedKey {
  if ((sshKeyId === undefined) === (inline === undefined))
    throw invalidRequest(
      ['sshKeyId', 'ssh_public_key'].map((path) => ({ path, message: 'expected exactly one of the two' })),
    );
  if (sshKeyId !== undefined) return { savedId: sshKeyId };
  return { inline: parsePublicKey('ssh_public_key', inline ?? '') };
}

/**
 * The caller must still insert a temporary key. The key is deleted when its deployment ends.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, or VALIDATION_ERROR for the temporary key of another deployment
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
