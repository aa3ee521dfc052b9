import type { Caller } from '../caller.ts';
import { notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { addTeam } from './add-team.ts';

/**
 * Makes the caller's default team, and switches to it, where they are in none (M: GET /api/teams: "creates a default
 * personal team on first call when the caller has none"). Of several calls at once, one makes it.
 *
 * @throws {ApiError} NOT_FOUND
 */
export async function createPersonalTeam(
  { store, clock, random }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { userId }: Caller,
): Promise<string> {
  return store.transact(async (tx) => {
    // Locks the user, so that two at once do not both make one.
    const user = await tx.users.byId(userId);
    if (user === null) throw notFound('user');
    const [existing] = await tx.teams.membershipsOf(userId);
    if (existing !== undefined) return existing.teamId;
    const { id } = await addTeam(tx, { clock, random }, { name: `${user.name}'s team`, ownerId: userId });
    await tx.users.update({ ...user, currentTeamId: id });
    return id;
  });
}
