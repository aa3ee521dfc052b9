import { ApiError, forbidden, notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { bestDiscount } from '../discounts/price.ts';
import { assertNotSuspended, type Caller } from '../model/own-rows.ts';
import type { Standing } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { createPersonalTeam } from './teams.ts';

/**
 * The team of a request: the named one, else the current one, else a new personal one.
 * @throws {ApiError} NOT_FOUND, or FORBIDDEN if the caller is not a member
 */
export async function resolveTeam(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
  teamId?: string,
): Promise<string> {
  const { read } = deps.store;
  if (teamId !== undefined) {
    await assertMember(read, caller, teamId);
    return teamId;
  }
  const current = (await currentTeam(read, caller)) ?? (await createPersonalTeam(deps, caller));
  caller.actsFor?.(current);
  return current;
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN if the caller is not a member */
export async function assertMember(
  { teams }: Pick<Reader, 'teams'>,
  { userId, actsFor }: Caller,
  teamId: string,
): Promise<Standing> {
  actsFor?.(teamId);
  const standing = await teams.standing(teamId, userId);
  if (standing !== null && standing.role !== null) return standing;
  throw (await teams.byId(teamId)) === null ? notFound('team') : forbidden('team');
}

/** @throws {ApiError} NOT_FOUND, or FORBIDDEN if the caller is not a member, or is suspended, or the team is */
export async function assertMayCreate(
  read: Pick<Reader, 'teams'>,
  caller: Caller,
  teamId: string,
): Promise<void> {
  assertNotSuspended(await assertMember(read, caller, teamId));
}

/** The team that the caller last switched to and still belongs to, else the caller's oldest membership; null: none. */
async function currentTeam(
  { teams, users }: Pick<Reader, 'teams' | 'users'>,
  { userId }: Caller,
): Promise<string | null> {
  const memberships = await teams.membershipsOf(userId);
  const switchedTo = (await users.byId(userId))?.currentTeamId;
  const isThere = memberships.some(({ teamId }) => teamId === switchedTo);
  return (isThere ? switchedTo : memberships[0]?.teamId) ?? null;
}

export interface OwnershipFilter {
  /** Must be the caller's own. */
  userId?: string | undefined;
  /** Must be one of the caller's teams. */
  teamId?: string | undefined;
}

/**
 * Selects the named team, or all teams of the caller. With `userId`, it selects only what the caller created.
 * @throws {ApiError} FORBIDDEN for another user or another's team, NOT_FOUND for a team that does not exist
 */
export async function toOwners(
  { teams }: Pick<Reader, 'teams'>,
  caller: Caller,
  { userId, teamId }: OwnershipFilter,
): Promise<{ teamIds: readonly string[]; userId?: string }> {
  if (userId !== undefined && userId !== caller.userId)
    throw new ApiError('FORBIDDEN', 'userId: you can list only your own deployments.');
  const mine = (await teams.membershipsOf(caller.userId)).map((membership) => membership.teamId);
  if (teamId !== undefined && !mine.includes(teamId))
    throw (await teams.byId(teamId)) === null ? notFound('team') : forbidden('team');
  const teamIds = teamId === undefined ? mine : [teamId];
  return userId === undefined ? { teamIds } : { teamIds, userId };
}

/** The current discount of the caller's current team, in percent; null: not authenticated (M: Offer). */
export async function callerDiscount(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  caller: Caller | undefined,
): Promise<number | null> {
  if (caller === undefined) return null;
  const teamId = await currentTeam(store.read, caller);
  return teamId === null ? 0 : bestDiscount(await store.read.discounts.ofTeam(teamId), clock.now());
}
