import type { Caller } from '../caller.ts';
import type { Deps } from '../deps.ts';
import { ownSshKey } from './access.ts';

/**
 * M: DELETE /api/ssh-keys/{id}. What was deployed with the key keeps it.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function deleteSshKey(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  id: string,
): Promise<{ success: true }> {
  await store.transact(async (tx) => {
    const record = await ownSshKey(tx, caller, id);
    await tx.sshKeys.remove(record.id);
  });
  return { success: true };
}
