import type { Caller } from '../caller.ts';
import { forbidden, notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';
import type { SshKeyRecord } from '../records/people.ts';

/**
 * The key, if it is of a team of the caller.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function ownSshKey(
  read: Pick<Reader, 'sshKeys' | 'teams'>,
  { userId }: Caller,
  id: string,
): Promise<SshKeyRecord> {
  const record = await read.sshKeys.byId(id);
  if (record === null) throw notFound('SSH key');
  if ((await read.teams.member(record.teamId, userId)) === null) throw forbidden('SSH key');
  return record;
}
