import { Command } from 'commander';
import { withProviders } from '../../compose/providers.ts';
import { subscribeToStock, unsubscribeFromStock } from '../../marketplace/mail/stock-alerts.ts';
import type { MailRecord } from '../../marketplace/model/ledger-records.ts';
import type { StockAlertRecord } from '../../marketplace/model/people.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { printLine } from '../../runtime/print.ts';
import { parseCount } from '../parse.ts';
import { type Column, type JsonFlag, printRecords, toJsonTime, toTime, withJson } from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase, withAllowPrivate } from './database.ts';

/** `berth marketplace mail` */
export function mailCommand(): Command {
  const mail = new Command('mail');
  withJson(
    onMarketplaceDatabase(
      mail.command('list'),
      async ({ store }, { to, limit, ...flags }: { to?: string; limit: string } & JsonFlag) => {
        const filter = { limit: parseCount('--limit', limit), ...(to !== undefined && { to }) };
        printRecords(await store.read.mail.list(filter), mailColumns, flags);
      },
    ),
  )
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .option('--limit <count>', 'so many at most', '50');
  return mail;
}

const mailColumns: readonly Column<MailRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
  { head: 'TO', key: 'to', value: ({ to }) => to },
  { head: 'KIND', key: 'kind', value: ({ kind }) => kind },
  { head: 'SUBJECT', key: 'subject', value: ({ subject }) => subject },
  { head: 'STATE', key: 'state', value: stateOf },
  { head: 'ATTEMPTS', key: 'attempts', value: ({ attempts }) => attempts },
  { head: 'LAST ERROR', key: 'last_error', value: ({ lastError }) => lastError, none: '' },
];

function stateOf({ sentAt, failedAt, dueAt }: MailRecord): string {
  if (sentAt !== null) return `sent ${toTime(sentAt)}`;
  return failedAt !== null ? `given up ${toTime(failedAt)}` : `due ${toTime(dueAt)}`;
}

/** `berth marketplace alerts` (M: Events: "a sold-out configuration alert"). */
export function alertsCommand(): Command {
  const alerts = new Command('alerts');
  withAllowPrivate(onMarketplaceDatabase(alerts.command('add <email> <provider> <offer>'), addAlert))
    .description('mail a user when the offer returns to stock')
    .option('--region <region>', 'in this region; default: in any');
  withJson(
    onMarketplaceDatabase(
      alerts.command('list [email]'),
      async ({ store: { read } }, email: string | undefined, flags: JsonFlag) => {
        const records =
          email === undefined
            ? await read.stockAlerts.list()
            : await read.stockAlerts.ofUser((await findUser(read.users, email)).id);
        printRecords(records, alertColumns, flags);
      },
    ),
  ).description('list the alerts of a user, or of all');
  onMarketplaceDatabase(alerts.command('remove <id>'), async (deps, id: string) => {
    await unsubscribeFromStock(deps, id);
    printLine(`Alert ${id} is ended.`);
  }).description('end an alert');
  return alerts;
}

async function addAlert(
  deps: CommandDeps,
  email: string,
  providerId: string,
  offerId: string,
  { region = null }: { region?: string | null },
): Promise<void> {
  await withProviders(deps.config, async (providers) => {
    const { id: userId } = await findUser(deps.store.read.users, email);
    const wanted = { userId, providerId, offerId, region };
    const { id } = await subscribeToStock({ ...deps, providers }, wanted);
    printLine(`Alert ${id}: ${email} is mailed when ${offerId} of ${providerId} is back.`);
  });
}

const alertColumns: readonly Column<StockAlertRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'USER', key: 'user_id', value: ({ userId }) => userId },
  { head: 'PROVIDER', key: 'provider', value: ({ providerId }) => providerId },
  { head: 'OFFER', key: 'offer', value: ({ offerId }) => offerId },
  { head: 'REGION', key: 'region', value: ({ region }) => region, none: 'any' },
  { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
];
