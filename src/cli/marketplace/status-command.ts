import { Command } from 'commander';
import { toLossCap } from '../../compose/options.ts';
import { listProviders, type ProviderRow } from '../../marketplace/operate/views/providers.ts';
import { listTeams, type TeamRow } from '../../marketplace/operate/views/teams.ts';
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

/** More teams than there are. */
const ALL = 1_000_000;

/** `berth marketplace status`: what an operator looks at first. */
export function statusCommand(): Command {
  return withJson(
    onMarketplaceDatabase(new Command('status'), async (deps, { json }: JsonFlag) => {
      const { store, clock } = deps;
      const providers = await readProviders(deps);
      const { teams } = await listTeams(store.read, { limit: ALL }, clock.now());
      const mailDueAt = await store.read.mail.nextDueAt();
      if (!json) return tell(providers, teams, mailDueAt);
      printJson({
        providers: providers.map((provider) => toFields(provider, providerColumns)),
        teams: teams.map((team) => toFields(team, teamColumns)),
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

function tell(providers: readonly ProviderRow[], teams: readonly TeamRow[], mailDueAt: number | null): void {
  printRecords(providers, providerColumns, {});
  const spending = teams.filter(({ burn_usd_per_hour: burn }) => burn > 0);
  printLine('');
  if (spending.length === 0) printLine(`None of ${teams.length} teams is billed for anything.`);
  else {
    printRecords(
      spending.toSorted((a, b) => (a.hours_left ?? 0) - (b.hours_left ?? 0)),
      teamColumns,
      {},
    );
    printLine(`${teams.length - spending.length} more teams are billed for nothing.`);
  }
  printLine(
    mailDueAt === null ? 'No mail waits.' : `The oldest mail that waits was due ${toTime(mailDueAt)}.`,
  );
}
