import { ApiError, forbidden, notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { bestDiscount } from '../discounts/price.ts';
import type { Caller } from '../model/own-rows.ts';
import type { MemberRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { createPersonalTeam } from './teams.ts';

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
  const current = (await currentTeam(read, caller)) ?? (await createPersonalTeam(deps, caller));
  caller.actsFor?.(current);
  return current;
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN where the caller is no member */
export async function assertMember(
  { teams }: Pick<Reader, 'teams'>,
  { userId, actsFor }: Caller,
  teamId: string,
): Promise<MemberRecord> {
  actsFor?.(teamId);
  const member = await teams.member(teamId, userId);
  if (member !== null) return member;
  throw (await teams.byId(teamId)) === null ? notFound('team') : forbidden('team');
}

/** The team that a caller switched to last and is still in, else the one that they have been in longest; null: none. */
async function currentTeam(
  { teams, users }: Pick<Reader, 'teams' | 'users'>,
  { userId }: Caller,
): Promise<string | null> {
  const memberships = await teams.membershipsOf(userId);
  const switchedTo = (await users.byId(userId))?.currentTeamId;
  const isThere = memberships.some(({ teamId }) => teamId === switchedTo);
  return (isThere ? switchedTo : memberships[0]?.teamId) ?? null;
}

/** What a list may be narrowed by. */
export interface OwnershipFilter {
  /** Must be the caller's own. */
  userId?: string | undefined;
  /** Must be one of the caller's. */
  teamId?: string | undefined;
}

/**
 * Whose things a list shows: those of the team that is named, or of all teams of the caller; with `userId` only what
 * the caller made there.
 *
 * @throws {ApiError} FORBIDDEN for another user or another's team, NOT_FOUND for a team that does not exist
 */
export async function toOwners(
  { teams }: Pick<Reader, 'teams'>,
  caller: Caller,
  { userId, teamId }: OwnershipFilter,
): Promise<{ teamIds: readonly string[]; userId?: string }> {
  if (userId !== undefined && userId !== caller.userId)
    throw new ApiError('FORBIDDEN', 'userId: only your own can be listed.');
  const mine = (await teams.membershipsOf(caller.userId)).map((membership) => membership.teamId);
  if (teamId !== undefined && !mine.includes(teamId))
    throw (await teams.byId(teamId)) === null ? notFound('team') : forbidden('team');
  const teamIds = teamId === undefined ? mine : [teamId];
  return userId === undefined ? { teamIds } : { teamIds, userId };
}

/** What the caller's current team has off now, in percent; null: nobody is logged in (M: Offer). */
export async function callerDiscount(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  caller: Caller | undefined,
): Promise<number | null> {
  if (caller === undefined) return null;
  const teamId = await currentTeam(store.read, caller);
  return teamId === null ? 0 : bestDiscount(await store.read.discounts.ofTeam(teamId), clock.now());
}
