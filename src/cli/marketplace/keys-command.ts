import { Command } from 'commander';
import type { ApiKeyRecord } from '../../marketplace/model/people.ts';
import { createKey, revokeKey } from '../../marketplace/teams/keys.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import {
  keyColumns,
  type NewKeyFlags,
  parseExpiry,
  printNewKey,
  printRevoked,
  withNewKeyFlags,
} from '../keys.ts';
import { type JsonFlag, printRecords, withJson } from '../print-records.ts';
import { onMarketplaceDatabase, withMarketplaceDatabase } from './database.ts';

/** `berth marketplace keys` (M: Authentication, 1). */
export function marketplaceKeysCommand(): Command {
  const keys = new Command('keys');
  withNewKeyFlags(withMarketplaceDatabase(keys.command('create <email>'))).action(
    async (email: string, flags: NewKeyFlags, command: Command) =>
      onMarketplaceDatabase(command, async (deps) => {
        const expiresAt = parseExpiry(flags, deps.clock.now());
        const { key, record } = await createKey(deps, email, { label: flags.label ?? null, expiresAt });
        printNewKey(key, record.id, flags);
      }),
  );
  withJson(withMarketplaceDatabase(keys.command('list [email]')))
    .description('list the keys of a user, or of all')
    .action(async (email: string | undefined, flags: JsonFlag, command: Command) =>
      onMarketplaceDatabase(command, async ({ store: { read }, clock }) => {
        const owners = email === undefined ? await read.users.list() : [await findUser(read.users, email)];
        const records: (ApiKeyRecord & { email: string })[] = [];
        for (const { id, email: address } of owners)
          for (const record of await read.keys.ofUser(id)) records.push({ ...record, email: address });
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
      onMarketplaceDatabase(command, async (deps) => printRevoked(id, await revokeKey(deps, id))),
    );
  return keys;
}
