import type { Caller } from '../caller.ts';
import { notFound } from '../contract/errors.ts';
import type { Team } from '../contract/team.ts';
import type { Deps } from '../deps.ts';
import { assertMember } from './access.ts';
import { toTeam } from './to-team.ts';

/**
 * M: GET /api/teams/details/{teamId}: "caller must be a member (else 403); `balance` is the stored value, not
 * recomputed".
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function teamDetails(
  { store: { read } }: Pick<Deps, 'store'>,
  caller: Caller,
  teamId: string,
): Promise<Team> {
  await assertMember(read, caller, teamId);
  const record = await read.teams.byId(teamId);
  if (record === null) throw notFound('team');
  return toTeam(read, record, record.balanceMicroUsd);
}
