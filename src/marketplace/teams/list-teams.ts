import type { Caller } from '../caller.ts';
import type { Team } from '../contract/team.ts';
import type { Deps } from '../deps.ts';
import { accrued } from '../ledger/accrued.ts';
import { resolveTeam } from './access.ts';
import { toTeam } from './to-team.ts';

/**
 * M: GET /api/teams: "Team[] with real-time balance; creates a default personal team on first call when the caller has
 * none".
 */
export async function listTeams(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
): Promise<Team[]> {
  await resolveTeam(deps, caller);
  const { read } = deps.store;
  const now = deps.clock.now();
  const teams: Team[] = [];
  for (const { teamId } of await read.teams.membershipsOf(caller.userId)) {
    const record = await read.teams.byId(teamId);
    if (record === null) continue;
    const balance = record.balanceMicroUsd - (await accrued(read, teamId, now));
    teams.push(await toTeam(read, record, balance));
  }
  return teams;
}
