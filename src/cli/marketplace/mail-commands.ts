import { Command, Option } from 'commander';
import { withProviders } from '../../compose/marketplace/providers.ts';
import { subscribeToStock, unsubscribeFromStock } from '../../marketplace/mail/stock-alerts.ts';
import type { StockAlertRecord } from '../../marketplace/model/people.ts';
import { listMails, type MailRow, mailStateSchema } from '../../marketplace/operate/views/mails.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import {
  type Column,
  fieldColumns,
  type ListFlags,
  type OutputFlag,
  printDone,
  printRecords,
  toJsonTime,
  toReadLimit,
  withList,
  withOutput,
} from '../print-records.ts';
import { withMarketplaceActions } from './action-commands.ts';
import { auditedHere, type CommandDeps, onMarketplaceDatabase } from './database.ts';

export function mailCommand(): Command {
  const mail = new Command('mail');
  withList(onMarketplaceDatabase(mail.command('ls'), printMails), 50)
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .addOption(new Option('--state <state>', 'in this state only').choices(mailStateSchema.options));
  return withMarketplaceActions(mail);
}

interface MailFlags extends ListFlags {
  to?: string;
  state?: MailRow['state'];
  limit: number;
}

async function printMails({ store }: CommandDeps, flags: MailFlags): Promise<void> {
  const { to, state } = flags;
  const { mails } = await listMails(store.read, { to, state, limit: toReadLimit(flags) });
  printRecords(mails, mailColumns, flags, 'No mails found.');
}

const mailColumns: readonly Column<MailRow>[] = [
  ...fieldColumns<MailRow>({
    ID: 'id',
    CREATED: 'created_at',
    TO: 'to',
    KIND: 'kind',
    SUBJECT: 'subject',
  }),
  { head: 'STATE', key: 'state', value: stateOf },
  ...fieldColumns<MailRow>({ ATTEMPTS: 'attempts', 'LAST ERROR': 'last_error' }, ['last_error']),
];

function stateOf({ state, sent_at: sentAt, failed_at: failedAt, due_at: dueAt }: MailRow): string {
  if (state === 'sent') return `sent ${sentAt}`;
  return state === 'given_up' ? `given up ${failedAt}` : `due ${dueAt}`;
}

/** `berth marketplace alerts` (M: Events: "a sold-out configuration alert"). */
export function alertsCommand(): Command {
  const alerts = new Command('alerts');
  withOutput(onMarketplaceDatabase(alerts.command('create <email> <provider> <offer>'), addAlert))
    .description('mail a user when the offer returns to stock')
    .option('--region <region>', 'in this region; default: in any');
  withList(
    onMarketplaceDatabase(
      alerts.command('ls [email]'),
      async ({ store: { read } }, email: string | undefined, flags: ListFlags) => {
        const records =
          email === undefined
            ? await read.stockAlerts.list()
            : await read.stockAlerts.ofUser((await findUser(read.users, email)).id);
        printRecords(records, alertColumns, flags, 'There is no such alert.');
      },
    ),
  ).description('list the alerts of a user, or of all');
  withOutput(
    onMarketplaceDatabase(alerts.command('rm <id>'), async (deps, id: string, flags: OutputFlag) => {
      const action = { action: 'alert.remove', subject: id };
      await auditedHere(deps, action, (within) => unsubscribeFromStock(within, id));
      printDone(flags, { id }, `Alert ${id} is ended.`);
    }),
  ).description('end an alert');
  return alerts;
}

async function addAlert(
  deps: CommandDeps,
  email: string,
  providerId: string,
  offerId: string,
  flags: OutputFlag & { region?: string },
): Promise<void> {
  const { region = null } = flags;
  await withProviders(deps.config, deps.store, async (providers) => {
    const { id: userId } = await findUser(deps.store.read.users, email);
    const wanted = { userId, providerId, offerId, region };
    const action = {
      action: 'alert.add',
      subject: email,
      detail: { provider: providerId, offer: offerId, region },
    };
    const { id } = await auditedHere(deps, action, (within) =>
      subscribeToStock({ ...within, providers }, wanted),
    );
    const sentence = `Alert ${id}: ${email} is mailed when ${offerId} of ${providerId} is back.`;
    printDone(flags, { id, user: email, provider: providerId, offer: offerId, region }, sentence);
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
