import type { Caller } from '../caller.ts';
import type { CreateSshKey, SshKey } from '../contract/ssh-key.ts';
import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import type { SshKeyRecord } from '../records/people.ts';
import { resolveTeam } from '../teams/access.ts';
import { parsePublicKey } from './parse-public-key.ts';
import { toSshKey } from './to-ssh-key.ts';

/**
 * M: POST /api/ssh-keys
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND; then nothing was written
 */
export async function createSshKey(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
  { name, publicKey: text, teamId: wantedTeamId }: CreateSshKey,
): Promise<SshKey> {
  const { publicKey, fingerprint } = parsePublicKey('publicKey', text);
  const teamId = await resolveTeam(deps, caller, wantedTeamId);
  const record: SshKeyRecord = {
    id: newId(deps.random, 'ssh'),
    userId: caller.userId,
    teamId,
    name,
    publicKey,
    fingerprint,
    isTemporary: false,
    createdAt: deps.clock.now(),
  };
  await deps.store.transact((tx) => tx.sshKeys.insert(record));
  return toSshKey(record);
}
