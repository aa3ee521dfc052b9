import type { Caller } from '../caller.ts';
import { ApiError, forbidden, notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';

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
