import { Command } from 'commander';
import type { ApiKeyRecord } from '../../marketplace/model/people.ts';
import { createKey, revokeKey } from '../../marketplace/operate/commands.ts';
import { findUser } from '../../marketplace/teams/users.ts';
import { toTime } from '../../operator-kit/views/values.ts';
import { stateOfKey } from '../../orchestrator/operate/views/accounts.ts';
import { printKey, printRevoked } from '../keys.ts';
import { localActor } from '../local-actor.ts';
import { parseTimeToCome } from '../parse.ts';
import {
  type Column,
  type ListFlags,
  type OutputFlag,
  printRecords,
  toJsonTime,
  withList,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace keys` (M: Authentication, 1). */
export function marketplaceKeysCommand(): Command {
  const keys = new Command('keys');
  withOutput(
    onMarketplaceDatabase(keys.command('create <email>'), addKey)
      .description('create a key and print it; it is shown only this once')
      .option('--label <text>', 'what it is for')
      .option('--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time'),
  );
  withList(onMarketplaceDatabase(keys.command('ls [email]'), printKeys)).description(
    'list the keys of a user, or of all',
  );
  withOutput(
    onMarketplaceDatabase(keys.command('revoke <id>'), async (deps, id: string, flags: OutputFlag) => {
      const { revoked_at: at } = await revokeKey.perform(deps, localActor(), { keyId: id });
      printRevoked(flags, id, Date.parse(at));
    }),
  ).description('end a key; a running server follows within a second');
  return keys;
}

async function addKey(
  deps: CommandDeps,
  email: string,
  { label, expires, ...output }: OutputFlag & { label?: string; expires?: string },
): Promise<void> {
  const expiresAt = expires === undefined ? null : parseTimeToCome('--expires', expires, deps.clock.now());
  const given = { user: email, label, ...(expiresAt !== null && { expires_at: toTime(expiresAt) }) };
  const made = await createKey.perform(deps, localActor(), given);
  printKey(output, made, made.api_key, `key ${made.id}`);
}

type KeyOfUser = ApiKeyRecord & { user: string };

async function printKeys(
  { store: { read }, clock }: CommandDeps,
  email: string | undefined,
  flags: ListFlags,
): Promise<void> {
  const owners = email === undefined ? await read.users.list() : [await findUser(read.users, email)];
  const records: KeyOfUser[] = [];
  for (const { id, email: user } of owners)
    for (const record of await read.keys.ofUser(id)) records.push({ ...record, user });
  printRecords(records, columnsAt(clock.now()), flags, 'There is no such key.');
}

function columnsAt(now: number): readonly Column<KeyOfUser>[] {
  return [
    { head: 'ID', key: 'id', value: ({ id }) => id },
    { head: 'USER', key: 'user', value: ({ user }) => user },
    { head: 'KEY', key: 'key', value: ({ prefix, lastFour }) => `${prefix}…${lastFour}` },
    { head: 'LABEL', key: 'label', value: ({ label }) => label, none: '' },
    { head: 'STATE', key: 'state', value: (key) => stateOfKey(key, now) },
    { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
    { head: 'EXPIRES', key: 'expires_at', value: ({ expiresAt }) => toJsonTime(expiresAt) },
    { head: 'LAST USED', key: 'last_used_at', value: ({ lastUsedAt }) => toJsonTime(lastUsedAt) },
  ];
}
