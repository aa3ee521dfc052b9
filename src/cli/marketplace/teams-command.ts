import { Command } from 'commander';
import { type TeamRole, teamRoles } from '../../marketplace/contract/team.ts';
import { realTimeBalance } from '../../marketplace/ledger/balance.ts';
import { toDollars } from '../../marketplace/ledger/dollars.ts';
import { removeMember, setMember } from '../../marketplace/teams/manage-members.ts';
import { createTeam, findTeam, switchTeam } from '../../marketplace/teams/manage-teams.ts';
import { Fatal } from '../fatal.ts';
import { toTime } from '../keys-command.ts';
import { printLine, printTable } from '../print.ts';
import {
  type MarketplaceStoreDeps,
  withMarketplaceDatabase,
  withMarketplaceStore,
} from './open-marketplace-store.ts';

/** `berth marketplace teams`. A team is named by its id or its slug, a user by their e-mail address. */
export function teamsCommand(): Command {
  const teams = new Command('teams').description('teams: make and show them, set who is in them');
  withMarketplaceDatabase(teams.command('create <name>'))
    .description('make a team')
    .requiredOption('--owner <email>', 'who owns it')
    .option('--slug <slug>', 'its unique short name')
    .action(async (name: string, { owner, slug }: { owner: string; slug?: string }, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const team = await createTeam(deps, { name, owner, ...(slug !== undefined && { slug }) });
        printLine(`Team ${team.name} (${team.id}, ${team.slug}) is made.`);
      }),
    );
  withMarketplaceDatabase(teams.command('list'))
    .description('list the teams')
    .action(async (_flags: object, command: Command) => withMarketplaceStore(command, printTeams));
  withMarketplaceDatabase(teams.command('show <team>'))
    .description('show a team and its members')
    .action(async (idOrSlug: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, (deps) => printTeam(deps, idOrSlug)),
    );
  withMarketplaceDatabase(teams.command('add-member <team> <email>'))
    .description('put a user into a team, or change their role')
    .option('--role <role>', teamRoles.join(', '), 'member')
    .action(async (team: string, user: string, { role }: { role: string }, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        await setMember(deps, { team, user, role: toRole(role) });
        printLine(`${user} is ${role} of ${team}.`);
      }),
    );
  withMarketplaceDatabase(teams.command('remove-member <team> <email>'))
    .description('take a user out of a team')
    .action(async (team: string, user: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        await removeMember(deps, { team, user });
        printLine(`${user} is no member of ${team} any more.`);
      }),
    );
  withMarketplaceDatabase(teams.command('switch <email> <team>'))
    .description("make a team the user's current one")
    .action(async (user: string, team: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        await switchTeam(deps, { user, team });
        printLine(`${team} is the current team of ${user}.`);
      }),
    );
  return teams;
}

function toRole(text: string): TeamRole {
  const role = teamRoles.find((known) => known === text);
  if (role === undefined) throw new Fatal(`--role ${text}: give one of ${teamRoles.join(', ')}.`);
  return role;
}

async function printTeams({ store, clock }: MarketplaceStoreDeps): Promise<void> {
  const rows: string[][] = [];
  for (const { id, name, slug, ownerId, createdAt } of await store.read.teams.list()) {
    const owner = await store.read.users.byId(ownerId);
    const balance = toDollars(await realTimeBalance(store.read, id, clock.now()));
    rows.push([id, slug, name, owner?.email ?? ownerId, balance, toTime(createdAt)]);
  }
  printTable(['ID', 'SLUG', 'NAME', 'OWNER', 'BALANCE', 'CREATED'], rows);
}

async function printTeam({ store, clock }: MarketplaceStoreDeps, idOrSlug: string): Promise<void> {
  const { id, name, slug } = await findTeam(store.read.teams, idOrSlug);
  const balance = await realTimeBalance(store.read, id, clock.now());
  printLine(`${name} (${id}, ${slug}) has ${toDollars(balance)} left to spend.\n`);
  const rows: string[][] = [];
  for (const { userId, role, joinedAt } of await store.read.teams.members(id)) {
    const user = await store.read.users.byId(userId);
    rows.push([userId, user?.email ?? '', user?.name ?? '', role, toTime(joinedAt)]);
  }
  printTable(['USER', 'EMAIL', 'NAME', 'ROLE', 'JOINED'], rows);
}
