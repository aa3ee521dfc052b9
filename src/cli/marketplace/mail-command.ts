import { Command } from 'commander';
import type { MailRecord } from '../../marketplace/model/ledger-records.ts';
import { toTime } from '../keys-command.ts';
import { type JsonFlag, printRecords, toJsonTime, withJson } from '../print-records.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';
import { parseCount } from './parse-values.ts';

/** `berth marketplace mail` */
export function mailCommand(): Command {
  const mail = new Command('mail');
  withJson(withMarketplaceDatabase(mail.command('list')))
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .option('--limit <count>', 'so many at most', '50')
    .action(async ({ to, limit, ...flags }: { to?: string; limit: string } & JsonFlag, command: Command) =>
      withMarketplaceStore(command, async ({ store }) => {
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
