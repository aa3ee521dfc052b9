import { usdFromMicroUsd } from '../../contract/values.ts';
import { notFound } from '../contract/errors.ts';
import type { Balance, Team } from '../contract/team.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { accrued } from '../ledger/balance.ts';
import type { Caller } from '../model/own-rows.ts';
import type { TeamRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { assertMember, resolveTeam } from './access.ts';

/** M: GET /api/teams: "Team[] with real-time balance". */
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

/**
 * M: GET /api/balance, in real time. With `all` false, only the current team is listed.
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

/** M: GET /api/teams/details/{teamId}: "the stored value, not recomputed". @throws {ApiError} NOT_FOUND or FORBIDDEN */
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

/** M: Team, in the response format, with this balance. */
async function toTeam(
  read: Pick<Reader, 'teams' | 'users'>,
  { id, name, slug, ownerId, createdAt }: TeamRecord,
  balanceMicroUsd: number,
): Promise<Team> {
  const members: Team['members'] = [];
  for (const { userId, role, joinedAt } of await read.teams.members(id)) {
    const user = await read.users.byId(userId);
    if (user === null) continue;
    members.push({ userId, email: user.email, name: user.name, role, joinedAt: toTimestamp(joinedAt) });
  }
  const balance = usdFromMicroUsd(balanceMicroUsd);
  return { id, name, slug, ownerId, balance, members, createdAt: toTimestamp(createdAt) };
}
