import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Team } from '../contract/team.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Reader } from '../ports/store.ts';
import type { TeamRecord } from '../records/people.ts';

/** M: Team, as the wire has it, with this balance. */
export async function toTeam(
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
