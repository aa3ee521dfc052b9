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
import {
  type Column,
  type ListFlags,
  type OutputFlag,
  printRecords,
  withList,
  withOutput,
} from '../print-records.ts';
import { auditedHere, type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace keys` (M: Authentication, 1). */
export function marketplaceKeysCommand(): Command {
  const keys = new Command('keys');
  withNewKeyFlags(
    onMarketplaceDatabase(keys.command('create <email>'), async (deps, email: string, flags: NewKeyFlags) => {
      const expiresAt = parseExpiry(flags, deps.clock.now());
      const { label = null } = flags;
      const action = { action: 'key.create', subject: email, detail: label === null ? {} : { label } };
      const { key, record } = await auditedHere(deps, action, (within) =>
        createKey(within, email, { label, expiresAt }),
      );
      printNewKey(key, record.id, flags);
    }),
  );
  withList(onMarketplaceDatabase(keys.command('ls [email]'), printKeys)).description(
    'list the keys of a user, or of all',
  );
  withOutput(
    onMarketplaceDatabase(keys.command('revoke <id>'), async (deps, id: string, flags: OutputFlag) => {
      const action = { action: 'key.revoke', subject: id };
      printRevoked(flags, id, await auditedHere(deps, action, (within) => revokeKey(within, id)));
    }),
  ).description('end a key; a running server follows within seconds');
  return keys;
}

async function printKeys(
  { store: { read }, clock }: CommandDeps,
  email: string | undefined,
  flags: ListFlags,
): Promise<void> {
  const owners = email === undefined ? await read.users.list() : [await findUser(read.users, email)];
  const records: (ApiKeyRecord & { user: string })[] = [];
  for (const { id, email: user } of owners)
    for (const record of await read.keys.ofUser(id)) records.push({ ...record, user });
  const owner: Column<(typeof records)[number]> = { head: 'USER', key: 'user', value: ({ user }) => user };
  printRecords(records, keyColumns(owner, clock.now()), flags, 'There is no such key.');
}
