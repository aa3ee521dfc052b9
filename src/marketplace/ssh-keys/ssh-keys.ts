import type { CreateSshKey, SshKey } from '../contract/ssh-key.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { type CreateOnce, notOnce } from '../model/create-once.ts';
import { newId } from '../model/names.ts';
import { type Caller, own, type Purpose } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { assertMayCreate, type OwnershipFilter, resolveTeam, toOwners } from '../teams/access.ts';
import { parsePublicKey } from './parse-public-key.ts';

/** M: POST /api/ssh-keys. @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND; then nothing was written */
export async function createSshKey(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
  { name, publicKey: text, teamId: wantedTeamId }: CreateSshKey,
  once: CreateOnce = notOnce,
): Promise<SshKey> {
  const now = deps.clock.now();
  const load = (read: Pick<Reader, 'sshKeys' | 'teams'>, id: string) => ownSshKey(read, caller, id, 'read');
  const earlier = await once.earlier(deps.store.read, now, load);
  if (earlier !== null) return toSshKey(earlier);
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
    createdAt: now,
  };
  const made = await deps.store.transact(async (tx) => {
    const first = await once.earlier(tx, now, load);
    if (first !== null) return first;
    await assertMayCreate(tx, caller, teamId);
    await tx.sshKeys.insert(record);
    await once.keep(tx, record);
    return record;
  });
  return toSshKey(made);
}

/** M: GET /api/ssh-keys/{id}. @throws {ApiError} NOT_FOUND or FORBIDDEN */
export async function readSshKey(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  id: string,
): Promise<SshKey> {
  return toSshKey(await ownSshKey(store.read, caller, id, 'read'));
}

/** M: GET /api/ssh-keys: the newest first, without temporary keys. @throws {ApiError} FORBIDDEN or NOT_FOUND */
export async function listSshKeys(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  filter: OwnershipFilter,
): Promise<SshKey[]> {
  const records = await store.read.sshKeys.list(await toOwners(store.read, caller, filter));
  return records.map(toSshKey);
}

/** M: DELETE /api/ssh-keys/{id}. Existing deployments keep the key. @throws {ApiError} NOT_FOUND or FORBIDDEN */
export async function deleteSshKey(
  { store }: Pick<Deps, 'store'>,
  caller: Caller,
  id: string,
): Promise<{ success: true }> {
  await store.transact(async (tx) => {
    const record = await ownSshKey(tx, caller, id, 'end');
    await tx.sshKeys.remove(record.id);
  });
  return { success: true };
}

/** @throws {ApiError} as {@link own} */
export async function ownSshKey(
  { sshKeys, teams }: Pick<Reader, 'sshKeys' | 'teams'>,
  { userId }: Caller,
  id: string,
  purpose: Purpose,
): Promise<SshKeyRecord> {
  return own(teams, { userId }, await sshKeys.byId(id), 'SSH key', purpose);
}

/** M: SSH key, in the response format. */
function toSshKey(record: SshKeyRecord): SshKey {
  const { id, userId, teamId, name, publicKey, fingerprint } = record;
  return { id, userId, teamId, name, publicKey, fingerprint, createdAt: toTimestamp(record.createdAt) };
}
