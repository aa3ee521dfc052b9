import type { SshKey } from '../contract/ssh-key.ts';
import { toTimestamp } from '../contract/values.ts';
import type { SshKeyRecord } from '../records/people.ts';

/** M: SSH key, as the wire has it. */
export function toSshKey(record: SshKeyRecord): SshKey {
  const { id, userId, teamId, name, publicKey, fingerprint } = record;
  return { id, userId, teamId, name, publicKey, fingerprint, createdAt: toTimestamp(record.createdAt) };
}
