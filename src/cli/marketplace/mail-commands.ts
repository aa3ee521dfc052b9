import { Command } from 'commander';
import { withProviders } from '../../compose/providers.ts';
import { subscribeToStock, unsubscribeFromStock } from '../../marketplace/mail/stock-alerts.ts';
import type { MailRecord } from '../../marketplace/model/ledger-records.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { printLine } from '../../runtime/print.ts';
import { parseCount } from '../parse.ts';
import { type JsonFlag, printRecords, toJsonTime, toTime, withJson } from '../print-records.ts';
import { onMarketplaceDatabase, withAllowPrivate, withMarketplaceDatabase } from './database.ts';

/** `berth marketplace mail` */
export function mailCommand(): Command {
  const mail = new Command('mail');
  withJson(withMarketplaceDatabase(mail.command('list')))
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .option('--limit <count>', 'so many at most', '50')
    .action(async ({ to, limit, ...flags }: { to?: string; limit: string } & JsonFlag, command: Command) =>
      onMarketplaceDatabase(command, async ({ store }) => {
        const records = await store.read.mail.list({
          limit: parseCount('--limit', limit),
          ...(to !== undefined && { to }),
        });
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
            { head: 'TO', key: 'to', value: ({ to: address }) => address },
            { head: 'KIND', key: 'kind', value: ({ kind }) => kind },
            { head: 'SUBJECT', key: 'subject', value: ({ subject }) => subject },
            { head: 'STATE', key: 'state', value: stateOf },
            { head: 'ATTEMPTS', key: 'attempts', value: ({ attempts }) => attempts },
            {
              head: 'LAST ERROR',
              key: 'last_error',
              value: ({ lastError }) => lastError,
              text: ({ lastError }) => lastError ?? '',
            },
          ],
          flags,
        );
      }),
    );
  return mail;
}

function stateOf({ sentAt, failedAt, dueAt }: MailRecord): string {
  if (sentAt !== null) return `sent ${toTime(sentAt)}`;
  return failedAt !== null ? `given up ${toTime(failedAt)}` : `due ${toTime(dueAt)}`;
}

/** `berth marketplace alerts` (M: Events: "a sold-out configuration alert"). */
export function alertsCommand(): Command {
  const alerts = new Command('alerts');
  withAllowPrivate(withMarketplaceDatabase(alerts.command('add <email> <provider> <offer>')))
    .description('mail a user when the offer returns to stock')
    .option('--region <region>', 'in this region; default: in any')
    .action(
      async (
        email: string,
        providerId: string,
        offerId: string,
        { region = null }: { region?: string | null },
        command: Command,
      ) =>
        onMarketplaceDatabase(command, (deps) =>
          withProviders(deps.config, async (providers) => {
            const { id: userId } = await findUser(deps.store.read.users, email);
            const wanted = { userId, providerId, offerId, region };
            const { id } = await subscribeToStock({ ...deps, providers }, wanted);
            printLine(`Alert ${id}: ${email} is mailed when ${offerId} of ${providerId} is back.`);
          }),
        ),
    );
  withJson(withMarketplaceDatabase(alerts.command('list [email]')))
    .description('list the alerts of a user, or of all')
    .action(async (email: string | undefined, flags: JsonFlag, command: Command) =>
      onMarketplaceDatabase(command, async ({ store: { read } }) => {
        const records =
          email === undefined
            ? await read.stockAlerts.list()
            : await read.stockAlerts.ofUser((await findUser(read.users, email)).id);
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'USER', key: 'user_id', value: ({ userId }) => userId },
            { head: 'PROVIDER', key: 'provider', value: ({ providerId }) => providerId },
            { head: 'OFFER', key: 'offer', value: ({ offerId }) => offerId },
            {
              head: 'REGION',
              key: 'region',
              value: ({ region }) => region,
              text: ({ region }) => region ?? 'any',
            },
            { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
          ],
          flags,
        );
      }),
    );
  withMarketplaceDatabase(alerts.command('remove <id>'))
    .description('end an alert')
    .action(async (id: string, _flags: object, command: Command) =>
      onMarketplaceDatabase(command, async (deps) => {
        await unsubscribeFromStock(deps, id);
        printLine(`Alert ${id} is ended.`);
      }),
    );
  return alerts;
}
