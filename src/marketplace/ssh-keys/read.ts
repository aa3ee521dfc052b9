import type { Caller } from '../caller.ts';
import type { SshKey } from '../contract/ssh-key.ts';
import type { Deps } from '../deps.ts';
import { ownSshKey } from './access.ts';
import { toSshKey } from './to-ssh-key.ts';

/**
 * M: GET /api/ssh-keys/{id}
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function readSshKey(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  id: string,
): Promise<SshKey> {
  return toSshKey(await ownSshKey(store.read, caller, id));
}
