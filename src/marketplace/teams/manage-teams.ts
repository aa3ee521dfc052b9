import { findUser } from '../accounts/users.ts';
import type { Deps } from '../deps.ts';
import { OperatorError } from '../operator-error.ts';
import { Duplicate } from '../ports/store.ts';
import type { TeamRecord } from '../records/people.ts';
import { addTeam } from './add-team.ts';
import { findTeam } from './find-team.ts';

const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_LENGTH = 63;

/** Makes a team of a user, who owns it. @throws {OperatorError} */
export async function createTeam(
  { store, ...deps }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { name, owner, slug }: { name: string; owner: string; slug?: string },
): Promise<TeamRecord> {
  if (name.trim() === '') throw new OperatorError('A team has a name.');
  if (slug !== undefined && (!SLUG.test(slug) || slug.length > MAX_LENGTH))
    throw new OperatorError(
      `"${slug}" is no slug: use lower-case words joined by "-", of ${MAX_LENGTH} characters at most.`,
    );
  const taken = () => new OperatorError(`There is a team "${slug}" already.`);
  return store
    .transact(async (tx) => {
      if (slug !== undefined && (await tx.teams.bySlug(slug)) !== null) throw taken();
      const user = await findUser(tx.users, owner);
      const team = await addTeam(tx, deps, { name, ownerId: user.id, ...(slug !== undefined && { slug }) });
      if (user.currentTeamId === null) await tx.users.update({ ...user, currentTeamId: team.id });
      return team;
    })
    .catch((error) => {
      throw error instanceof Duplicate && slug !== undefined ? taken() : error;
    });
}

/** Makes a team the one that a user's requests without `teamId` mean. @throws {OperatorError} */
export async function switchTeam(
  { store }: Pick<Deps, 'store'>,
  { user: email, team: idOrSlug }: { user: string; team: string },
): Promise<void> {
  await store.transact(async (tx) => {
    const team = await findTeam(tx.teams, idOrSlug);
    const user = await findUser(tx.users, email);
    if ((await tx.teams.member(team.id, user.id)) === null)
      throw new OperatorError(`${user.email} is no member of the team "${team.slug}".`);
    await tx.users.update({ ...user, currentTeamId: team.id });
  });
}
