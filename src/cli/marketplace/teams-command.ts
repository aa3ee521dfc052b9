import { Command } from 'commander';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { type TeamRole, teamRoles } from '../../marketplace/contract/team.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import { realTimeBalance } from '../../marketplace/ledger/balance.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import type { MemberRecord, TeamRecord, UserRecord } from '../../marketplace/model/people.ts';
import { removeMember, setMember } from '../../marketplace/teams/members.ts';
import { createTeam, switchTeam } from '../../marketplace/teams/teams.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  type JsonFlag,
  printJson,
  printRecords,
  toFields,
  toJsonTime,
  withJson,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace teams`. A team is named by its id or its slug, a user by their e-mail address. */
export function teamsCommand(): Command {
  const teams = new Command('teams');
  onMarketplaceDatabase(
    teams.command('create <name>'),
    async (deps, name: string, { owner, slug }: { owner: string; slug?: string }) => {
      const team = await createTeam(deps, { name, owner, slug });
      printLine(`Team ${team.name} (${team.id}, ${team.slug}) is created.`);
    },
  )
    .description('create a team')
    .requiredOption('--owner <email>', 'who owns it')
    .option('--slug <slug>', 'its unique short name');
  withJson(onMarketplaceDatabase(teams.command('list'), printTeams)).description('list the teams');
  withJson(onMarketplaceDatabase(teams.command('show <team>'), printTeam)).description(
    'show a team and its members',
  );
  onMarketplaceDatabase(
    teams.command('add-member <team> <email>'),
    async (deps, team: string, user: string, { role }: { role: string }) => {
      await setMember(deps, { team, user, role: toRole(role) });
      printLine(`${user} is ${role} of ${team}.`);
    },
  )
    .description('add a user to a team, or change their role')
    .option('--role <role>', teamRoles.join(', '), 'member');
  onMarketplaceDatabase(
    teams.command('remove-member <team> <email>'),
    async (deps, team: string, user: string) => {
      await removeMember(deps, { team, user });
      printLine(`${user} is no longer a member of ${team}.`);
    },
  ).description('remove a user from a team');
  onMarketplaceDatabase(teams.command('switch <email> <team>'), async (deps, user: string, team: string) => {
    await switchTeam(deps, { user, team });
    printLine(`${team} is the current team of ${user}.`);
  }).description("make a team the user's current one");
  return teams;
}

function toRole(text: string): TeamRole {
  const role = teamRoles.find((known) => known === text);
  if (role === undefined) throw new Fatal(`--role ${text}: give one of ${teamRoles.join(', ')}.`);
  return role;
}

interface ShownTeam {
  team: TeamRecord;
  owner: string;
  balanceMicroUsd: number;
}

const teamColumns: readonly Column<ShownTeam>[] = [
  { head: 'ID', key: 'id', value: ({ team }) => team.id },
  { head: 'SLUG', key: 'slug', value: ({ team }) => team.slug },
  { head: 'NAME', key: 'name', value: ({ team }) => team.name },
  { head: 'OWNER', key: 'owner', value: ({ owner }) => owner },
  {
    head: 'BALANCE',
    key: 'balance_usd',
    value: ({ balanceMicroUsd }) => usdFromMicroUsd(balanceMicroUsd),
    text: ({ balanceMicroUsd }) => toDollars(balanceMicroUsd),
  },
  { head: 'CREATED', key: 'created_at', value: ({ team }) => toJsonTime(team.createdAt) },
];

async function toShown({ store, clock }: CommandDeps, team: TeamRecord): Promise<ShownTeam> {
  const owner = (await store.read.users.byId(team.ownerId))?.email ?? team.ownerId;
  return { team, owner, balanceMicroUsd: await realTimeBalance(store.read, team.id, clock.now()) };
}

async function printTeams(deps: CommandDeps, flags: JsonFlag): Promise<void> {
  const shown: ShownTeam[] = [];
  for (const team of await deps.store.read.teams.list()) shown.push(await toShown(deps, team));
  printRecords(shown, teamColumns, flags);
}

const memberColumns: readonly Column<MemberRecord & { user: UserRecord | null }>[] = [
  { head: 'USER', key: 'user_id', value: ({ userId }) => userId },
  { head: 'EMAIL', key: 'email', value: ({ user }) => user?.email ?? '' },
  { head: 'NAME', key: 'name', value: ({ user }) => user?.name ?? '' },
  { head: 'ROLE', key: 'role', value: ({ role }) => role },
  { head: 'JOINED', key: 'joined_at', value: ({ joinedAt }) => toJsonTime(joinedAt) },
];

async function printTeam(deps: CommandDeps, idOrSlug: string, flags: JsonFlag): Promise<void> {
  const { read } = deps.store;
  const shown = await toShown(deps, await findTeam(read.teams, idOrSlug));
  const { id, name, slug } = shown.team;
  const members: (MemberRecord & { user: UserRecord | null })[] = [];
  for (const member of await read.teams.members(id))
    members.push({ ...member, user: await read.users.byId(member.userId) });
  if (flags.json) {
    const fields = members.map((member) => toFields(member, memberColumns));
    printJson({ ...toFields(shown, teamColumns), members: fields });
    return;
  }
  printLine(`${name} (${id}, ${slug}) has ${toDollars(shown.balanceMicroUsd)} left to spend.\n`);
  printRecords(members, memberColumns, flags);
}
