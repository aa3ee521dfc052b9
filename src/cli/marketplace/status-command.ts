import { Command } from 'commander';
import { counted } from '../../contract/counted.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import {
  type KnownProviders,
  listProviders,
  type ProviderRow,
} from '../../marketplace/operate/views/providers.ts';
import { type MailsView, readMails } from '../../marketplace/operate/views/status.ts';
import { firstToRunOut, type TeamRow } from '../../marketplace/operate/views/teams.ts';
import { printLine } from '../../runtime/print.ts';
import { isData, type OutputFlag, printData, printPart, withOutput } from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** Number of teams shown, beginning with those that run out of credit first. */
const TEAMS_SHOWN = 50;

/** `berth marketplace status`: the operator's overview. */
export function statusCommand(): Command {
  return withOutput(
    onMarketplaceDatabase(new Command('status'), async (deps, flags: OutputFlag) => {
      const { store, clock } = deps;
      const providers = await readProviders(deps);
      const spending = await store.read.teams.spending(clock.now());
      const teams = await firstToRunOut(store.read, spending, TEAMS_SHOWN, clock.now());
      const counts = { teams: await store.read.teams.count(), spending: spending.length };
      const mails = await readMails(store.read, clock.now());
      if (!isData(flags)) return printStatus(providers, teams, counts, toMailSentence(mails, clock.now()));
      printData(flags, {
        providers: providers.map(toProviderFacts),
        teams: teams.map(toTeamFacts),
        team_count: counts.teams,
        spending_count: counts.spending,
        mails,
      });
    }),
  );
}

/** Reads the providers from the database, with the answers in `known` if they were called. */
export function readProviders(
  { store, clock, config }: CommandDeps,
  known: KnownProviders = new Map(
    config.providers.filter(({ retired }) => !retired).map(({ id }) => [id, null]),
  ),
): Promise<ProviderRow[]> {
  return listProviders(store.read, {
    known,
    maxLosses: defaultOptions.maxLosses,
    now: clock.now(),
  });
}

function toProviderFacts(row: ProviderRow) {
  const { provider, deploying, running, stopped, volumes, waiting_for_ssh, to_sync, losses_held } = row;
  const counts = { deploying, running, stopped, volumes, waiting_for_ssh, to_sync, losses_held };
  return { provider, ...counts, confirmed_until: row.confirmed_until };
}

function toTeamFacts({ slug, balance_usd, burn_usd_per_hour, hours_left }: TeamRow) {
  return { team: slug, balance_usd, burn_usd_per_hour, hours_left };
}

function printStatus(
  providers: readonly ProviderRow[],
  teams: readonly TeamRow[],
  { teams: all, spending }: { teams: number; spending: number },
  mailSentence: string,
): void {
  printPart(providers.map(toProviderFacts));
  printLine('');
  if (spending === 0) {
    if (all > 0) printLine(`Nothing is billed to ${counted(all, 'team')}.`);
  } else {
    printPart(teams.map(toTeamFacts));
    if (spending > teams.length)
      printLine(
        `Not shown: ${counted(spending - teams.length, 'team')}. All: berth marketplace teams ls --spending`,
      );
    if (all > spending) printLine(`Nothing is billed to ${counted(all - spending, 'other team')}.`);
  }
  printLine(mailSentence);
}

/** Words the number and age of waiting mails, and how many were given up. */
function toMailSentence(
  { waiting, oldest_created_at: writtenAt, next_try_at: tryAt, given_up: givenUp }: MailsView,
  now: number,
): string {
  const next = tryAt === null || Date.parse(tryAt) <= now ? 'now' : `at ${tryAt}`;
  const sentence =
    waiting === 0
      ? 'No mail is waiting.'
      : `Waiting mails: ${waiting}. The oldest was written at ${writtenAt}; the next try is due ${next}.`;
  return givenUp === 0
    ? sentence
    : `${sentence} Given up in the last 24 hours: ${givenUp}. See berth marketplace mail ls --state given_up`;
}
