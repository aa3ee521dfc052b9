import { notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { quietWatch } from '../ledger/balance-watch.ts';
import { newId } from '../model/names.ts';
import { type Caller, findTeam, OperatorError } from '../model/own-rows.ts';
import type { TeamRecord } from '../model/people.ts';
import { Duplicate, type Transaction } from '../model/store.ts';
import { findUser } from './users.ts';

const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_LENGTH = 63;

/** Creates a team with its owner. @throws {OperatorError} */
export async function createTeam(
  { store, ...deps }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { name, owner, slug }: { name: string; owner: string; slug?: string | undefined },
): Promise<TeamRecord> {
  if (name.trim() === '') throw new OperatorError('A team needs a name.');
  if (slug !== undefined && (!SLUG.test(slug) || slug.length > MAX_LENGTH))
    throw new OperatorError(
      `"${slug}" is not a slug: use lower-case words joined by "-", of ${MAX_LENGTH} characters at most.`,
    );
  const taken = () => new OperatorError(`A team "${slug}" already exists.`);
  return store
    .transact(async (tx) => {
      if (slug !== undefined && (await tx.teams.bySlug(slug)) !== null) throw taken();
      const user = await findUser(tx.users, owner);
      const team = await addTeam(tx, deps, { name, ownerId: user.id, slug });
      if (user.currentTeamId === null) await tx.users.update({ ...user, currentTeamId: team.id });
      return team;
    })
    .catch((error) => {
      throw error instanceof Duplicate && slug !== undefined ? taken() : error;
    });
}

/** Sets what a `member` may change and end. @throws {OperatorError} */
export async function setMemberRights(
  { store }: Pick<Deps, 'store'>,
  idOrSlug: string,
  memberRights: TeamRecord['memberRights'],
): Promise<TeamRecord> {
  return store.transact(async (tx) => {
    const team = { ...(await findTeam(tx.teams, idOrSlug)), memberRights };
    await tx.teams.update(team);
    return team;
  });
}

/** Sets the team of a user's requests without `teamId`. @throws {OperatorError} */
export async function switchTeam(
  { store }: Pick<Deps, 'store'>,
  { user: email, team: idOrSlug }: { user: string; team: string },
): Promise<void> {
  await store.transact(async (tx) => {
    const team = await findTeam(tx.teams, idOrSlug);
    const user = await findUser(tx.users, email);
    if ((await tx.teams.member(team.id, user.id)) === null)
      throw new OperatorError(`${user.email} is not a member of the team "${team.slug}".`);
    await tx.users.update({ ...user, currentTeamId: team.id });
  });
}

const MAX_SLUG_BASE = 40;

/** Writes a new team with its owner. Without a `slug`, it gets a unique one made from its name. */
async function addTeam(
  tx: Pick<Transaction, 'teams'>,
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  { name, ownerId, slug }: { name: string; ownerId: string; slug?: string },
): Promise<TeamRecord> {
  const now = clock.now();
  const record: TeamRecord = {
    id: newId(random, 'team'),
    name,
    ownerId,
    balanceMicroUsd: 0,
    watch: quietWatch,
    createdAt: now,
    memberRights: 'own',
    suspension: null,
    slug: slug ?? `${toSlug(name)}-${random.bytes(4).toString('hex')}`,
  };
  await tx.teams.insert(record);
  await tx.teams.putMember({ teamId: record.id, userId: ownerId, role: 'owner', joinedAt: now });
  return record;
}

function toSlug(name: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/['’\p{M}]/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_BASE)
    .replace(/^-+|-+$/g, '');
  return words === '' ? 'team' : words;
}

/**
 * M: GET /api/teams: "creates a default personal team on first call". Of concurrent calls, only one does.
 * @throws {ApiError} NOT_FOUND
 */
export async function createPersonalTeam(
  { store, clock, random }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { userId }: Caller,
): Promise<string> {
  return store.transact(async (tx) => {
    // Locks the user, so that two concurrent calls do not both create a team.
    const user = await tx.users.byId(userId);
    if (user === null) throw notFound('user');
    const [existing] = await tx.teams.membershipsOf(userId);
    if (existing !== undefined) return existing.teamId;
    const { id } = await addTeam(tx, { clock, random }, { name: `${user.name}'s team`, ownerId: userId });
    await tx.users.update({ ...user, currentTeamId: id });
    return id;
  });
}
