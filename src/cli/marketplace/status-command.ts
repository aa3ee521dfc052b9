import { Command } from 'commander';
import { toLossCap } from '../../compose/options.ts';
import { counted } from '../../contract/counted.ts';
import { listProviders, type ProviderRow } from '../../marketplace/operate/views/providers.ts';
import { firstToRunOut, type TeamRow } from '../../marketplace/operate/views/teams.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  fieldColumns,
  type JsonFlag,
  printJson,
  printRecords,
  toFields,
  toJsonTime,
  toTime,
  withJson,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';
import { burnColumns } from './teams-command.ts';

/** Of the teams that spend, those that run out first. */
const TEAMS_SHOWN = 50;

/** `berth marketplace status`: what an operator looks at first. */
export function statusCommand(): Command {
  return withJson(
    onMarketplaceDatabase(new Command('status'), async (deps, { json }: JsonFlag) => {
      const { store, clock } = deps;
      const providers = await readProviders(deps);
      const spending = await store.read.teams.spending();
      const teams = await firstToRunOut(store.read, spending, TEAMS_SHOWN, clock.now());
      const counts = { teams: await store.read.teams.count(), spending: spending.length };
      const mailDueAt = await store.read.mail.nextDueAt();
      if (!json) return tell(providers, teams, counts, mailDueAt);
      printJson({
        providers: providers.map((provider) => toFields(provider, providerColumns)),
        teams: teams.map((team) => toFields(team, teamColumns)),
        team_count: counts.teams,
        spending_count: counts.spending,
        mail_due_at: toJsonTime(mailDueAt),
      });
    }),
  );
}

/** As rows tell of them: a command calls no provider. */
export function readProviders({ store, clock, config }: CommandDeps): Promise<ProviderRow[]> {
  return listProviders(store.read, {
    known: new Map(config.providers.map(({ id }) => [id, null])),
    maxLosses: toLossCap(config.polling),
    now: clock.now(),
  });
}

const providerColumns = fieldColumns<ProviderRow>({
  PROVIDER: 'provider',
  DEPLOYING: 'deploying',
  RUNNING: 'running',
  STOPPED: 'stopped',
  VOLUMES: 'volumes',
  'NO SSH YET': 'waiting_for_ssh',
  'TO SYNC': 'to_sync',
  HELD: 'losses_held',
  'CONFIRMED UNTIL': 'confirmed_until',
});

const teamColumns: readonly Column<TeamRow>[] = [
  { head: 'TEAM', key: 'team', value: ({ slug }) => slug },
  ...burnColumns,
];

function tell(
  providers: readonly ProviderRow[],
  teams: readonly TeamRow[],
  { teams: all, spending }: { teams: number; spending: number },
  mailDueAt: number | null,
): void {
  printRecords(providers, providerColumns, {});
  printLine('');
  if (spending === 0) printLine(`Nothing is billed to ${counted(all, 'team')}.`);
  else {
    printRecords(teams, teamColumns, {});
    if (spending > teams.length)
      printLine(
        `Not shown: ${counted(spending - teams.length, 'team')}. All: berth marketplace teams list --spending`,
      );
    printLine(`Nothing is billed to ${counted(all - spending, 'other team')}.`);
  }
  printLine(
    mailDueAt === null ? 'No mail waits.' : `The oldest mail that waits was due ${toTime(mailDueAt)}.`,
  );
}
