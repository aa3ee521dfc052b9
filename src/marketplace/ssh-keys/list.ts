import type { Caller } from '../caller.ts';
import type { SshKey } from '../contract/ssh-key.ts';
import type { Deps } from '../deps.ts';
import { type OwnershipFilter, toOwners } from '../teams/ownership-filter.ts';
import { toSshKey } from './to-ssh-key.ts';

/**
 * M: GET /api/ssh-keys: the newest first; without a filter those of all teams of the caller. Temporary keys are not
 * among them.
 *
 * @throws {ApiError} FORBIDDEN or NOT_FOUND
 */
export async function listSshKeys(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  filter: OwnershipFilter,
): Promise<SshKey[]> {
  const records = await store.read.sshKeys.list(await toOwners(store.read, caller, filter));
  return records.map(toSshKey);
}
