import { Command, Option } from 'commander';
import { counted } from '../../contract/counted.ts';
import { usdToDollars } from '../../contract/values.ts';
import { type TeamRole, teamRoles } from '../../marketplace/contract/team.ts';
import { createTeam, removeMember, setMember, switchTeam } from '../../marketplace/operate/commands.ts';
import { listTeams, readTeam, type TeamDetail, type TeamRow } from '../../marketplace/operate/views/teams.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import { localActor } from '../local-actor.ts';
import {
  type Column,
  fieldColumns,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printDone,
  printRecords,
  toReadLimit,
  withList,
  withNames,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

interface TeamFlags extends ListFlags {
  find?: string;
  spending?: true;
  limit: number;
}

/** `berth marketplace teams`. A team is named by its id or its slug, a user by their e-mail address. */
export function teamsCommand(): Command {
  const teams = new Command('teams');
  const create = onMarketplaceDatabase(
    teams.command('create <name>'),
    async (deps, name: string, flags: OutputFlag & { owner: string; slug?: string }) => {
      const { owner, slug } = flags;
      const team = await createTeam.perform(deps, localActor(), { name, owner, slug });
      printDone(flags, team, `Team ${team.name} (${team.id}, ${team.slug}) is created.`);
    },
  );
  withOutput(create)
    .description('create a team')
    .requiredOption('--owner <email>', 'who owns it')
    .option('--slug <slug>', 'its unique short name');
  withList(onMarketplaceDatabase(teams.command('ls'), printTeams), 100_000)
    .description('list the teams: balance, cost per hour, and how long the balance lasts')
    .option('--find <text>', 'those with this text in id, slug or name')
    .option('--spending', 'only teams with running costs, the soonest to run out first');
  withOutput(onMarketplaceDatabase(teams.command('show <team>'), printTeam)).description(
    'show a team, its members and its running costs',
  );
  const addMember = onMarketplaceDatabase(
    teams.command('add-member <team> <email>'),
    async (deps, team: string, user: string, flags: OutputFlag & { role: TeamRole }) => {
      const { role } = flags;
      await setMember.perform(deps, localActor(), { team, user, role });
      printDone(flags, { team, user, role }, `${user} is ${role} of ${team}.`);
    },
  );
  withOutput(addMember)
    .description('add a user to a team, or change their role')
    .addOption(new Option('--role <role>', 'what they may do').choices(teamRoles).default('member'));
  const removing = onMarketplaceDatabase(
    teams.command('remove-member <team> <email>'),
    async (deps, team: string, user: string, flags: OutputFlag) => {
      await removeMember.perform(deps, localActor(), { team, user });
      printDone(flags, { team, user }, `${user} is no longer a member of ${team}.`);
    },
  );
  withOutput(removing).description('remove a user from a team');
  withOutput(
    onMarketplaceDatabase(
      teams.command('switch <email> <team>'),
      async (deps, user: string, team: string, flags: OutputFlag) => {
        await switchTeam.perform(deps, localActor(), { user, team });
        printDone(flags, { user, team }, `${team} is the current team of ${user}.`);
      },
    ),
  ).description("make a team the user's current one");
  return teams;
}

/** A team's balance, what it is billed, and how long the balance lasts. */
export const burnColumns: readonly Column<TeamRow>[] = [
  {
    head: 'BALANCE',
    key: 'balance_usd',
    value: ({ balance_usd: usd }) => usd,
    text: (row) => usdToDollars(row.balance_usd),
  },
  {
    head: 'AN HOUR',
    key: 'burn_usd_per_hour',
    value: ({ burn_usd_per_hour: usd }) => usd,
    text: (row) => usdToDollars(row.burn_usd_per_hour),
  },
  { head: 'HOURS LEFT', key: 'hours_left', value: ({ hours_left: hours }) => hours },
];

const teamColumns: readonly Column<TeamRow>[] = [
  ...withNames(fieldColumns<TeamRow>({ ID: 'id', SLUG: 'slug', NAME: 'name', OWNER: 'owner' }), 'name'),
  ...burnColumns,
  ...fieldColumns<TeamRow>({ CREATED: 'created_at' }),
];

async function printTeams({ store, clock }: CommandDeps, flags: TeamFlags): Promise<void> {
  const { find, spending } = flags;
  const query = { text: find, isSpending: spending, limit: toReadLimit(flags) };
  const { teams } = await listTeams(store.read, query, clock.now());
  printRecords(teams, teamColumns, flags, 'No teams found.');
}

const memberColumns = withNames(
  fieldColumns<TeamDetail['members'][number]>({
    USER: 'user_id',
    EMAIL: 'email',
    NAME: 'name',
    ROLE: 'role',
    JOINED: 'joined_at',
  }),
  'name',
);
const paidColumns = fieldColumns<TeamDetail['pays_for'][number]>({
  'PAYS FOR': 'id',
  KIND: 'kind',
  STATE: 'state',
  'AN HOUR': 'usd_per_hour',
  SINCE: 'since',
  TAKEN: 'taken_usd',
});

async function printTeam({ store, clock }: CommandDeps, idOrSlug: string, flags: OutputFlag): Promise<void> {
  const team = await readTeam(store.read, idOrSlug, clock.now());
  if (team === null) throw new Fatal(`There is no team "${idOrSlug}": see \`berth marketplace teams ls\`.`);
  if (isData(flags)) return printData(flags, team);
  const { id, name, slug, hours_left: hours } = team;
  const lasts = hours === null ? 'nothing is billed to it' : `that lasts ${counted(hours, 'hour')}`;
  printLine(`${name} (${id}, ${slug}) has ${usdToDollars(team.balance_usd)} left to spend: ${lasts}.`);
  printLine('');
  printRecords(team.members, memberColumns, {});
  if (team.pays_for.length === 0) return;
  printLine('');
  printRecords(team.pays_for, paidColumns, {});
}
