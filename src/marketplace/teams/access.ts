import type { Caller } from '../caller.ts';
import { forbidden, notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { Reader } from '../ports/store.ts';
import type { MemberRecord } from '../records/people.ts';
import { createPersonalTeam } from './personal-team.ts';

/**
 * The team that a request means: the one that it names, else the caller's current one. Who has none gets a personal
 * team.
 *
 * @throws {ApiError} NOT_FOUND, or FORBIDDEN where the caller is no member
 */
export async function resolveTeam(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
  teamId?: string,
): Promise<string> {
  const { read } = deps.store;
  if (teamId !== undefined) return (await assertMember(read, caller, teamId)).teamId;
  return (await currentTeam(read, caller)) ?? createPersonalTeam(deps, caller);
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN where the caller is no member */
export async function assertMember(
  { teams }: Pick<Reader, 'teams'>,
  { userId }: Caller,
  teamId: string,
): Promise<MemberRecord> {
  const member = await teams.member(teamId, userId);
  if (member !== null) return member;
  throw (await teams.byId(teamId)) === null ? notFound('team') : forbidden('team');
}

/** The team that a caller switched to last and is still in, else the one that they have been in longest; null: none. */
export async function currentTeam(
  { teams, users }: Pick<Reader, 'teams' | 'users'>,
  { userId }: Caller,
): Promise<string | null> {
  const memberships = await teams.membershipsOf(userId);
  const switchedTo = (await users.byId(userId))?.currentTeamId;
  const isThere = memberships.some(({ teamId }) => teamId === switchedTo);
  return (isThere ? switchedTo : memberships[0]?.teamId) ?? null;
}
