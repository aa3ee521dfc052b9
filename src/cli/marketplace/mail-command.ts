import { Command } from 'commander';
import type { MailRecord } from '../../marketplace/records/mail-record.ts';
import { toTime } from '../keys-command.ts';
import { printTable } from '../print.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';
import { parseCount } from './parse-values.ts';

/** `berth marketplace mail` */
export function mailCommand(): Command {
  const mail = new Command('mail').description('what was mailed, and what was not');
  withMarketplaceDatabase(mail.command('list'))
    .description('list the mails, the newest first')
    .option('--to <email>', 'to this address only')
    .option('--limit <count>', 'so many at most', '50')
    .action(async ({ to, limit }: { to?: string; limit: string }, command: Command) =>
      withMarketplaceStore(command, async ({ store }) => {
        const records = await store.read.mail.list({
          limit: parseCount('--limit', limit),
          ...(to !== undefined && { to }),
        });
        printTable(
          ['ID', 'CREATED', 'TO', 'KIND', 'SUBJECT', 'STATE', 'ATTEMPTS', 'LAST ERROR'],
          records.map((record) => [
            ...[record.id, toTime(record.createdAt), record.to, record.kind, record.subject],
            ...[stateOf(record), String(record.attempts), record.lastError ?? ''],
          ]),
        );
      }),
    );
  return mail;
}

function stateOf({ sentAt, failedAt, dueAt }: MailRecord): string {
  if (sentAt !== null) return `sent ${toTime(sentAt)}`;
  return failedAt !== null ? `given up ${toTime(failedAt)}` : `due ${toTime(dueAt)}`;
}
