import { Command } from 'commander';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import {
  type Overview,
  type ProviderOverview,
  readOverview,
  type TeamOverview,
} from '../../marketplace/operate/overview.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  type JsonFlag,
  printJson,
  printRecords,
  toFields,
  toJsonTime,
  toTime,
  withJson,
} from '../print-records.ts';
import { onMarketplaceDatabase } from './database.ts';

/** `berth marketplace status`: what an operator looks at first. */
export function statusCommand(): Command {
  return withJson(
    onMarketplaceDatabase(new Command('status'), async ({ store, clock, config }, { json }: JsonFlag) => {
      const ids = config.providers.map(({ id }) => id);
      const overview = await readOverview(store.read, ids, clock.now());
      if (!json) return tell(overview);
      printJson({
        providers: overview.providers.map((provider) => toFields(provider, providerColumns)),
        teams: overview.teams.map((team) => toFields(team, teamColumns)),
        mail_due_at: toJsonTime(overview.mailDueAt),
      });
    }),
  );
}

const providerColumns: readonly Column<ProviderOverview>[] = [
  { head: 'PROVIDER', key: 'provider', value: ({ id }) => id },
  { head: 'DEPLOYING', key: 'deploying', value: ({ active }) => active.deploying ?? 0 },
  { head: 'RUNNING', key: 'running', value: ({ active }) => active.running ?? 0 },
  { head: 'STOPPED', key: 'stopped', value: ({ active }) => active.stopped ?? 0 },
  { head: 'VOLUMES', key: 'volumes', value: ({ volumes }) => volumes },
  { head: 'NO SSH YET', key: 'waiting_for_ssh', value: ({ waitingForSsh }) => waitingForSsh },
  { head: 'TO SYNC', key: 'to_sync', value: ({ toSync }) => toSync },
  { head: 'HELD', key: 'losses_held', value: ({ lossesHeld }) => lossesHeld },
  {
    head: 'CONFIRMED UNTIL',
    key: 'confirmed_until',
    value: ({ confirmedUntil }) => toJsonTime(confirmedUntil),
  },
];

const teamColumns: readonly Column<TeamOverview>[] = [
  { head: 'TEAM', key: 'team', value: ({ team }) => team.slug },
  {
    head: 'BALANCE',
    key: 'balance_usd',
    value: ({ balanceMicroUsd }) => usdFromMicroUsd(balanceMicroUsd),
    text: ({ balanceMicroUsd }) => toDollars(balanceMicroUsd),
  },
  {
    head: 'AN HOUR',
    key: 'burn_usd_per_hour',
    value: ({ burnMicroUsdPerHour }) => usdFromMicroUsd(burnMicroUsdPerHour),
    text: ({ burnMicroUsdPerHour }) => toDollars(burnMicroUsdPerHour),
  },
  { head: 'HOURS LEFT', key: 'hours_left', value: hoursLeft },
];

/** At what it costs now; null: it costs nothing. */
function hoursLeft({ balanceMicroUsd, burnMicroUsdPerHour }: TeamOverview): number | null {
  if (burnMicroUsdPerHour === 0) return null;
  return Math.max(0, Math.floor((balanceMicroUsd / burnMicroUsdPerHour) * 10) / 10);
}

function tell({ providers, teams, mailDueAt }: Overview): void {
  printRecords(providers, providerColumns, {});
  const spending = teams.filter(({ burnMicroUsdPerHour }) => burnMicroUsdPerHour > 0);
  printLine('');
  if (spending.length === 0) printLine(`None of ${teams.length} teams is billed for anything.`);
  else {
    printRecords(
      spending.sort((a, b) => (hoursLeft(a) ?? 0) - (hoursLeft(b) ?? 0)),
      teamColumns,
      {},
    );
    printLine(`${teams.length - spending.length} more teams are billed for nothing.`);
  }
  printLine(
    mailDueAt === null ? 'No mail waits.' : `The oldest mail that waits was due ${toTime(mailDueAt)}.`,
  );
}
