import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Caller } from '../caller.ts';
import type { Balance } from '../contract/team.ts';
import type { Deps } from '../deps.ts';
import { accrued } from '../ledger/accrued.ts';
import { resolveTeam } from './access.ts';

/**
 * M: GET /api/balance: the real-time balances of all teams of the caller, or of the one that is named; with `all` false
 * of the current one.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function listBalances(
  deps: Pick<Deps, 'store' | 'clock' | 'random'>,
  caller: Caller,
  { teamId: wantedTeamId, all = true }: { teamId?: string | undefined; all?: boolean | undefined } = {},
): Promise<Balance> {
  const currentTeamId = await resolveTeam(deps, caller);
  const { read } = deps.store;
  const shown =
    wantedTeamId !== undefined ? await resolveTeam(deps, caller, wantedTeamId) : all ? null : currentTeamId;
  const now = deps.clock.now();
  const teams: Balance['teams'] = [];
  for (const { teamId, role } of await read.teams.membershipsOf(caller.userId)) {
    if (shown !== null && shown !== teamId) continue;
    const team = await read.teams.byId(teamId);
    if (team === null) continue;
    const balance = usdFromMicroUsd(team.balanceMicroUsd - (await accrued(read, teamId, now)));
    teams.push({ teamId, teamName: team.name, balance, isCurrentTeam: teamId === currentTeamId, role });
  }
  return { teams, currency: 'USD' };
}
