import { Command } from 'commander';
import { createKey, revokeKey } from '../../marketplace/accounts/keys.ts';
import { findUser } from '../../marketplace/accounts/users.ts';
import type { ApiKeyRecord } from '../../marketplace/records/people.ts';
import { toTime } from '../keys-command.ts';
import { printLine, printTable } from '../print.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';
import { parseTime } from './parse-values.ts';

interface KeyFlags {
  label?: string;
  expires?: string;
  json?: true;
}

/** `berth marketplace keys` (M: Authentication, 1). */
export function marketplaceKeysCommand(): Command {
  const keys = new Command('keys').description('API keys of users: make, list and revoke them');
  withMarketplaceDatabase(keys.command('create <email>'))
    .description('make a key and print it: the only time that it is shown')
    .option('--label <text>', 'what it is for')
    .option('--expires <when>', 'when it ends: a number of days ("30d") or a time')
    .option('--json', 'print one line of JSON')
    .action(async (email: string, { label, expires, json }: KeyFlags, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const { key, record } = await createKey(deps, email, {
          label: label ?? null,
          expiresAt: expires === undefined ? null : parseTime('--expires', expires, deps.clock.now()),
        });
        if (json) printLine(JSON.stringify({ id: record.id, api_key: key }));
        else printLine(`${key}\n\nThis is key ${record.id}. Keep it now: it is not shown again.`);
      }),
    );
  withMarketplaceDatabase(keys.command('list [email]'))
    .description('list the keys of a user, or of all')
    .action(async (email: string | undefined, _flags: object, command: Command) =>
      withMarketplaceStore(command, async ({ store, clock }) => {
        const { users, keys: reader } = store.read;
        const owners = email === undefined ? await users.list() : [await findUser(users, email)];
        const rows: string[][] = [];
        for (const owner of owners)
          for (const record of await reader.ofUser(owner.id))
            rows.push(toRow(owner.email, record, clock.now()));
        printTable(['ID', 'USER', 'KEY', 'LABEL', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows);
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

function toRow(email: string, record: ApiKeyRecord, now: number): string[] {
  const { id, prefix, lastFour, label, revokedAt, createdAt, expiresAt, lastUsedAt } = record;
  const isOver = expiresAt !== null && expiresAt <= now;
  const state = revokedAt !== null ? 'revoked' : isOver ? 'expired' : 'valid';
  const times = [createdAt, expiresAt, lastUsedAt].map(toTime);
  return [id, email, `${prefix}…${lastFour}`, label ?? '', state, ...times];
}
