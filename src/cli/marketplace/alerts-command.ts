import { Command } from 'commander';
import { subscribeToStock, unsubscribeFromStock } from '../../marketplace/mail/stock-alerts.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { printLine } from '../print.ts';
import { type JsonFlag, printRecords, toJsonTime, withJson } from '../print-records.ts';
import { withProviders } from './connect-providers.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';

/** `berth marketplace alerts` (M: Events: "a sold-out configuration alert"). */
export function alertsCommand(): Command {
  const alerts = new Command('alerts');
  withMarketplaceDatabase(alerts.command('add <email> <provider> <offer>'))
    .description('mail a user when the offer returns to stock')
    .option('--region <region>', 'in this region; default: in any')
    .option('--allow-private', 'providers may be at private addresses and speak plain http')
    .action(
      async (
        email: string,
        providerId: string,
        offerId: string,
        { region = null }: { region?: string | null },
        command: Command,
      ) =>
        withMarketplaceStore(command, (deps) =>
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
      withMarketplaceStore(command, async ({ store: { read } }) => {
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
      withMarketplaceStore(command, async (deps) => {
        await unsubscribeFromStock(deps, id);
        printLine(`Alert ${id} is ended.`);
      }),
    );
  return alerts;
}
