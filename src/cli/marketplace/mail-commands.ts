import { Command } from 'commander';
import { withProviders } from '../../compose/providers.ts';
import { subscribeToStock, unsubscribeFromStock } from '../../marketplace/mail/stock-alerts.ts';
import type { StockAlertRecord } from '../../marketplace/model/people.ts';
import { resendMail } from '../../marketplace/operate/actions.ts';
import { listMails, type MailRow, mailStateSchema } from '../../marketplace/operate/views/mails.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { Fatal } from '../../ports/errors.ts';
import { printLine } from '../../runtime/print.ts';
import { localActor } from '../local-actor.ts';
import { parseLimit } from '../parse.ts';
import {
  type Column,
  fieldColumns,
  type JsonFlag,
  printRecords,
  toJsonTime,
  withJson,
} from '../print-records.ts';
import { auditedHere, type CommandDeps, onMarketplaceDatabase, withAllowPrivate } from './database.ts';

/** `berth marketplace mail` */
export function mailCommand(): Command {
  const mail = new Command('mail');
  withJson(onMarketplaceDatabase(mail.command('list'), printMails))
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .option('--state <state>', mailStateSchema.options.join(', '))
    .option('--limit <count>', 'so many at most', '50');
  onMarketplaceDatabase(mail.command('resend <id>'), async (deps, id: string) => {
    const { to } = await resendMail(deps, localActor(), id);
    printLine(`The mail ${id} to ${to} is tried now, by a running server within seconds.`);
  }).description('have a mail that waits, or was given up, tried now');
  return mail;
}

interface ListFlags extends JsonFlag {
  to?: string;
  state?: string;
  limit: string;
}

async function printMails({ store }: CommandDeps, { to, state, limit, ...flags }: ListFlags): Promise<void> {
  const known = mailStateSchema.options.find((one) => one === state);
  if (state !== undefined && known === undefined)
    throw new Fatal(`--state ${state}: give one of ${mailStateSchema.options.join(', ')}.`);
  const { mails } = await listMails(store.read, { to, state: known, limit: parseLimit('--limit', limit) });
  printRecords(mails, mailColumns, flags, 'There is no such mail.');
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
    const action = { action: 'alert.remove', subject: id };
    await auditedHere(deps, action, (within) => unsubscribeFromStock(within, id));
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
    const action = {
      action: 'alert.add',
      subject: email,
      detail: { provider: providerId, offer: offerId, region },
    };
    const { id } = await auditedHere(deps, action, (within) =>
      subscribeToStock({ ...within, providers }, wanted),
    );
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
