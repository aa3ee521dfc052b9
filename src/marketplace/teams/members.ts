import type { TeamRole } from '../contract/team.ts';
import type { Deps } from '../deps.ts';
import { findTeam, OperatorError } from '../model/own-rows.ts';
import type { MemberRecord } from '../model/people.ts';
import { findUser } from './users.ts';

interface Membership {
  /** An e-mail address or an id. */
  user: string;
  /** An id or a slug. */
  team: string;
}

/** Sets a user's role in a team. With a new owner, the former owner becomes an admin. @throws {OperatorError} */
export async function setMember(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  { user: email, team: idOrSlug, role }: Membership & { role: TeamRole },
): Promise<MemberRecord> {
  return store.transact(async (tx) => {
    const team = await findTeam(tx.teams, idOrSlug);
    const user = await findUser(tx.users, email);
    if (user.id === team.ownerId && role !== 'owner')
      throw new OperatorError(`${user.email} owns the team "${team.slug}": assign another owner first.`);
    const known = await tx.teams.member(team.id, user.id);
    const member = { teamId: team.id, userId: user.id, role, joinedAt: known?.joinedAt ?? clock.now() };
    if (role === 'owner' && user.id !== team.ownerId) {
      const formerOwner = await tx.teams.member(team.id, team.ownerId);
      if (formerOwner !== null) await tx.teams.putMember({ ...formerOwner, role: 'admin' });
      await tx.teams.update({ ...team, ownerId: user.id });
    }
    await tx.teams.putMember(member);
    if (user.currentTeamId === null) await tx.users.update({ ...user, currentTeamId: team.id });
    return member;
  });
}

/** Removes a user from a team. Their resources stay with the team. @throws {OperatorError} */
export async function removeMember(
  { store }: Pick<Deps, 'store'>,
  { user: email, team: idOrSlug }: Membership,
): Promise<Pick<MemberRecord, 'teamId'>> {
  return store.transact(async (tx) => {
    const team = await findTeam(tx.teams, idOrSlug);
    const user = await findUser(tx.users, email);
    if (user.id === team.ownerId)
      throw new OperatorError(`${user.email} owns the team "${team.slug}": assign another owner first.`);
    if ((await tx.teams.member(team.id, user.id)) === null)
      throw new OperatorError(`${user.email} is not a member of the team "${team.slug}".`);
    await tx.teams.removeMember(team.id, user.id);
    return { teamId: team.id };
  });
}
