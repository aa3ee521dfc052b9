import { Command } from 'commander';
import { counted } from '../../contract/counted.ts';
import { type TeamRole, teamRoles } from '../../marketplace/contract/team.ts';
import { usdToDollars } from '../../marketplace/contract/values.ts';
import type { MemberRecord, TeamRecord } from '../../marketplace/model/people.ts';
import { listTeams, readTeam, type TeamDetail, type TeamRow } from '../../marketplace/operate/views/teams.ts';
import { removeMember, setMember } from '../../marketplace/teams/members.ts';
import { createTeam, switchTeam } from '../../marketplace/teams/teams.ts';
import type { AuditedAction } from '../../operators/audit.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import { parseLimit } from '../parse.ts';
import {
  type Column,
  fieldColumns,
  type JsonFlag,
  printJson,
  printRecords,
  withJson,
} from '../print-records.ts';
import { auditedHere, type CommandDeps, onMarketplaceDatabase } from './database.ts';

interface ListFlags extends JsonFlag {
  find?: string;
  spending?: true;
  limit: string;
}

/** `berth marketplace teams`. A team is named by its id or its slug, a user by their e-mail address. */
export function teamsCommand(): Command {
  const teams = new Command('teams');
  onMarketplaceDatabase(
    teams.command('create <name>'),
    async (deps, name: string, { owner, slug }: { owner: string; slug?: string }) => {
      const action: AuditedAction<TeamRecord> = {
        action: 'team.create',
        detail: { name, owner },
        done: ({ id }) => ({ subject: id }),
      };
      const team = await auditedHere(deps, action, (within) => createTeam(within, { name, owner, slug }));
      printLine(`Team ${team.name} (${team.id}, ${team.slug}) is created.`);
    },
  )
    .description('create a team')
    .requiredOption('--owner <email>', 'who owns it')
    .option('--slug <slug>', 'its unique short name');
  withJson(onMarketplaceDatabase(teams.command('list'), printTeams))
    .description('list the teams: what each has left, what it is billed an hour, and how long that lasts')
    .option('--find <text>', 'those with this text in id, slug or name')
    .option('--spending', 'those that are billed for something, the soonest to run out first')
    .option('--limit <count>', 'how many at most', '100000');
  withJson(onMarketplaceDatabase(teams.command('show <team>'), printTeam)).description(
    'show a team: its members, and what it pays for',
  );
  onMarketplaceDatabase(
    teams.command('add-member <team> <email>'),
    async (deps, team: string, user: string, { role }: { role: string }) => {
      const member = { team, user, role: toRole(role) };
      const action = { action: 'team.set_member', subject: team, detail: { user, role }, done: toSubject };
      await auditedHere(deps, action, (within) => setMember(within, member));
      printLine(`${user} is ${role} of ${team}.`);
    },
  )
    .description('add a user to a team, or change their role')
    .option('--role <role>', teamRoles.join(', '), 'member');
  onMarketplaceDatabase(
    teams.command('remove-member <team> <email>'),
    async (deps, team: string, user: string) => {
      const action = { action: 'team.remove_member', subject: team, detail: { user }, done: toSubject };
      await auditedHere(deps, action, (within) => removeMember(within, { team, user }));
      printLine(`${user} is no longer a member of ${team}.`);
    },
  ).description('remove a user from a team');
  onMarketplaceDatabase(teams.command('switch <email> <team>'), async (deps, user: string, team: string) => {
    const action = { action: 'user.switch_team', subject: user, detail: { team } };
    await auditedHere(deps, action, (within) => switchTeam(within, { user, team }));
    printLine(`${team} is the current team of ${user}.`);
  }).description("make a team the user's current one");
  return teams;
}

/** Of a team that is there the audit log has the id, however it was named. */
function toSubject({ teamId }: Pick<MemberRecord, 'teamId'>): { subject: string } {
  return { subject: teamId };
}

function toRole(text: string): TeamRole {
  const role = teamRoles.find((known) => known === text);
  if (role === undefined) throw new Fatal(`--role ${text}: give one of ${teamRoles.join(', ')}.`);
  return role;
}

/** What a team has left, what it is billed for, and how long that lasts. */
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
  ...fieldColumns<TeamRow>({ ID: 'id', SLUG: 'slug', NAME: 'name', OWNER: 'owner' }),
  ...burnColumns,
  ...fieldColumns<TeamRow>({ CREATED: 'created_at' }),
];

async function printTeams({ store, clock }: CommandDeps, flags: ListFlags): Promise<void> {
  const { find, spending, limit, json } = flags;
  const query = { text: find, isSpending: spending, limit: parseLimit('--limit', limit) };
  const { teams } = await listTeams(store.read, query, clock.now());
  printRecords(teams, teamColumns, json ? { json } : {}, 'No team is found.');
}

const memberColumns = fieldColumns<TeamDetail['members'][number]>({
  USER: 'user_id',
  EMAIL: 'email',
  NAME: 'name',
  ROLE: 'role',
  JOINED: 'joined_at',
});
const paidColumns = fieldColumns<TeamDetail['pays_for'][number]>({
  'PAYS FOR': 'id',
  KIND: 'kind',
  STATE: 'state',
  'AN HOUR': 'usd_per_hour',
  SINCE: 'since',
  TAKEN: 'taken_usd',
});

async function printTeam({ store, clock }: CommandDeps, idOrSlug: string, { json }: JsonFlag): Promise<void> {
  const team = await readTeam(store.read, idOrSlug, clock.now());
  if (team === null) throw new Fatal(`There is no team "${idOrSlug}": see \`berth marketplace teams list\`.`);
  if (json) return printJson(team);
  const { id, name, slug, hours_left: hours } = team;
  const lasts = hours === null ? 'nothing is billed to it' : `that lasts ${counted(hours, 'hour')}`;
  printLine(`${name} (${id}, ${slug}) has ${usdToDollars(team.balance_usd)} left to spend: ${lasts}.\n`);
  printRecords(team.members, memberColumns, {});
  if (team.pays_for.length === 0) return;
  printLine('');
  printRecords(team.pays_for, paidColumns, {});
}
