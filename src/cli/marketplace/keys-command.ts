import { Command } from 'commander';
import type { ApiKeyRecord } from '../../marketplace/model/people.ts';
import { createKey, revokeKey } from '../../marketplace/teams/keys.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { keyColumns, toTime } from '../keys-command.ts';
import { parseTimeToCome } from '../parse-time.ts';
import { printLine } from '../print.ts';
import { type JsonFlag, printRecords, withJson } from '../print-records.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';

interface KeyFlags {
  label?: string;
  expires?: string;
  json?: true;
}

/** `berth marketplace keys` (M: Authentication, 1). */
export function marketplaceKeysCommand(): Command {
  const keys = new Command('keys');
  withMarketplaceDatabase(keys.command('create <email>'))
    .description('make a key and print it: the only time that it is shown')
    .option('--label <text>', 'what it is for')
    .option('--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time')
    .option('--json', 'print one line of JSON')
    .action(async (email: string, { label, expires, json }: KeyFlags, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const { key, record } = await createKey(deps, email, {
          label: label ?? null,
          expiresAt: expires === undefined ? null : parseTimeToCome('--expires', expires, deps.clock.now()),
        });
        if (json) printLine(JSON.stringify({ id: record.id, api_key: key }));
        else printLine(`${key}\n\nThis is key ${record.id}. Keep it now: it is not shown again.`);
      }),
    );
  withJson(withMarketplaceDatabase(keys.command('list [email]')))
    .description('list the keys of a user, or of all')
    .action(async (email: string | undefined, flags: JsonFlag, command: Command) =>
      withMarketplaceStore(command, async ({ store, clock }) => {
        const { users, keys: reader } = store.read;
        const owners = email === undefined ? await users.list() : [await findUser(users, email)];
        const records: (ApiKeyRecord & { email: string })[] = [];
        for (const { id, email: address } of owners)
          for (const record of await reader.ofUser(id)) records.push({ ...record, email: address });
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'USER', key: 'user', value: ({ email: address }) => address },
            ...keyColumns<ApiKeyRecord>(clock.now()),
          ],
          flags,
        );
      }),
    );
  withMarketplaceDatabase(keys.command('revoke <id>'))
    .description('end a key; a running server follows within seconds')
    .action(async (id: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        printLine(`Key ${id} is revoked since ${toTime(await revokeKey(deps, id))}.`);
      }),
    );
  return keys;
}
