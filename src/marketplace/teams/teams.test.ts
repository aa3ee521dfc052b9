import { expect, it } from 'vitest';
import { member, now, team, teamId, user, userId } from '../../../test/support/rows/marketplace-rows.ts';
import { balanceSchema, teamSchema } from '../contract/team.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import { assertMember, resolveTeam } from './access.ts';
import { removeMember, setMember } from './members.ts';
import { listBalances, listTeams, teamDetails } from './show-teams.ts';
import { createTeam, switchTeam } from './teams.ts';

const HOUR_MS = 3_600_000;
const caller = { userId };
const stranger = { userId: 'usr-2' };

/** A ledger with a second user, who belongs to no team. */
async function openTeams(balanceMicroUsd = 0) {
  const books = await openBooks(balanceMicroUsd);
  await books.store.transact((tx) => tx.users.insert(user({ id: 'usr-2', name: "Zoë O'Neil" })));
  return books;
}

it('lists the teams of the caller with their current balance [teams-listed]', async () => {
  const books = await openTeams(10_000_000);
  const { id } = await books.run();
  await books.clock.advance(HOUR_MS);
  await books.observe(id);
  const teams = await listTeams(books.deps, caller);
  expect(teams).toEqual([
    {
      id: teamId,
      name: 'Team team-1',
      slug: teamId,
      ownerId: userId,
      balance: 8,
      members: [
        {
          userId,
          email: 'usr-1@example.com',
          name: 'User usr-1',
          role: 'owner',
          joinedAt: '2026-11-21T00:00:00.000Z',
        },
      ],
      createdAt: '2026-11-21T00:00:00.000Z',
    },
  ]);
  expect(teamSchema.array().parse(teams)).toEqual(teams);
});

it('shows the stored balance in the details, to members alone [team-details-balance]', async () => {
  const books = await openTeams(10_000_000);
  await books.run();
  await books.clock.advance(HOUR_MS);
  expect(await teamDetails(books.deps, caller, teamId)).toMatchObject({ id: teamId, balance: 10 });
  await expect(teamDetails(books.deps, stranger, teamId)).rejects.toMatchObject({ status: 403 });
  await expect(teamDetails(books.deps, caller, 'team-9')).rejects.toMatchObject({ status: 404 });
});

it('creates one default personal team on the first call of a user without a team [team-personal]', async () => {
  const books = await openTeams();
  const [first, second] = await Promise.all([
    listTeams(books.deps, stranger),
    resolveTeam(books.deps, stranger),
  ]);
  expect(first).toHaveLength(1);
  expect(first[0]).toMatchObject({ id: second, name: "Zoë O'Neil's team", ownerId: 'usr-2', balance: 0 });
  expect(first[0]?.slug).toMatch(/^zoe-oneils-team-[0-9a-f]{8}$/);
  expect(first[0]?.members).toMatchObject([{ userId: 'usr-2', role: 'owner' }]);
  expect((await books.store.read.users.byId('usr-2'))?.currentTeamId).toBe(second);
});

it('resolves the given team, else the current one, else the oldest membership [team-resolved]', async () => {
  const books = await openTeams();
  expect(await resolveTeam(books.deps, caller)).toBe(teamId);
  await expect(resolveTeam(books.deps, stranger, teamId)).rejects.toMatchObject({ status: 403 });
  await expect(resolveTeam(books.deps, caller, 'team-9')).rejects.toMatchObject({ status: 404 });
  const other = await createTeam(books.deps, { name: 'Other', owner: 'usr-1@example.com', slug: 'other' });
  expect(await resolveTeam(books.deps, caller)).toBe(teamId);
  expect(await resolveTeam(books.deps, caller, other.id)).toBe(other.id);
  await switchTeam(books.deps, { user: 'usr-1@example.com', team: 'other' });
  expect(await resolveTeam(books.deps, caller)).toBe(other.id);
  await setMember(books.deps, { user: 'usr-2', team: 'other', role: 'owner' });
  await removeMember(books.deps, { user: 'usr-1', team: 'other' });
  expect(await resolveTeam(books.deps, caller)).toBe(teamId);
  await expect(resolveTeam(books.deps, { userId: 'usr-9' })).rejects.toMatchObject({ status: 404 });
});

it('shows the balances of all teams, of the current one, or of the given one [team-balances]', async () => {
  const books = await openTeams(10_000_000);
  await books.store.transact(async (tx) => {
    await tx.teams.insert(team({ id: 'team-2', ownerId: 'usr-2' }));
    await tx.teams.putMember(member({ teamId: 'team-2', role: 'admin', joinedAt: now + 1 }));
    await tx.teams.insert(team({ id: 'team-3', ownerId: 'usr-2' }));
  });
  const { id } = await books.run();
  await books.clock.advance(HOUR_MS / 2);
  await books.observe(id);
  const first = { teamId, teamName: 'Team team-1', balance: 9, isCurrentTeam: true, role: 'owner' };
  const second = {
    teamId: 'team-2',
    teamName: 'Team team-2',
    balance: 0,
    isCurrentTeam: false,
    role: 'admin',
  };
  const all = await listBalances(books.deps, caller);
  expect(all).toEqual({ teams: [first, second], currency: 'USD' });
  expect(balanceSchema.parse(all)).toEqual(all);
  expect((await listBalances(books.deps, caller, { all: false })).teams).toEqual([first]);
  expect((await listBalances(books.deps, caller, { teamId: 'team-2', all: false })).teams).toEqual([second]);
  await expect(listBalances(books.deps, caller, { teamId: 'team-3' })).rejects.toMatchObject({ status: 403 });
  await expect(listBalances(books.deps, caller, { teamId: 'team-9' })).rejects.toMatchObject({ status: 404 });
});

it('creates teams with a unique slug', async () => {
  const books = await openTeams();
  const wanted = { name: 'Blue', owner: 'usr-2@example.com', slug: 'blue' };
  const blue = await createTeam(books.deps, wanted);
  expect((await books.store.read.users.byId('usr-2'))?.currentTeamId).toBe(blue.id);
  await expect(createTeam(books.deps, wanted)).rejects.toThrow(/"blue" already/);
  await expect(createTeam(books.deps, { ...wanted, slug: 'No Slug' })).rejects.toThrow(/is not a slug/);
  await expect(createTeam(books.deps, { ...wanted, name: ' ' })).rejects.toThrow(/needs a name/);
  await expect(createTeam(books.deps, { name: 'x', owner: 'nobody@example.com' })).rejects.toThrow(/no user/);
  expect((await createTeam(books.deps, { name: '数据', owner: 'usr-2' })).slug).toMatch(/^team-[0-9a-f]{8}$/);
});

it('puts users into teams, gives them roles, and always leaves one owner', async () => {
  const books = await openTeams();
  const roles = async () =>
    Object.fromEntries(
      (await books.store.read.teams.members(teamId)).map(({ userId: id, role }) => [id, role]),
    );
  await setMember(books.deps, { user: 'usr-2', team: teamId, role: 'member' });
  await setMember(books.deps, { user: 'usr-2', team: teamId, role: 'admin' });
  expect(await roles()).toEqual({ 'usr-1': 'owner', 'usr-2': 'admin' });
  const owns = { user: 'usr-1', team: teamId };
  await expect(setMember(books.deps, { ...owns, role: 'member' })).rejects.toThrow(/owns the team/);
  await expect(removeMember(books.deps, owns)).rejects.toThrow(/owns the team/);
  await setMember(books.deps, { user: 'usr-2', team: teamId, role: 'owner' });
  expect(await roles()).toEqual({ 'usr-1': 'admin', 'usr-2': 'owner' });
  expect((await books.store.read.teams.byId(teamId))?.ownerId).toBe('usr-2');
  await removeMember(books.deps, owns);
  await expect(removeMember(books.deps, owns)).rejects.toThrow(/not a member/);
  await expect(switchTeam(books.deps, owns)).rejects.toThrow(/not a member/);
  await expect(assertMember(books.store.read, caller, teamId)).rejects.toMatchObject({ status: 403 });
  await expect(setMember(books.deps, { ...owns, team: 'team-9', role: 'member' })).rejects.toThrow(/no team/);
});
