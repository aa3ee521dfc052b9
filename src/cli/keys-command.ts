import { Command } from 'commander';
import { createKey, DEFAULT_ACCOUNT, revokeKey } from '../orchestrator/accounts/accounts.ts';
import type { ApiKeyRecord } from '../orchestrator/model/records.ts';
import {
  keyColumns,
  type NewKeyFlags,
  parseExpiry,
  printNewKey,
  printRevoked,
  withNewKeyFlags,
} from './keys.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type Column, type JsonFlag, printRecords, withJson } from './print-records.ts';

/** `berth keys`: several keys are valid at once, so that they rotate without downtime (O: Authentication, 2). */
export function keysCommand(): Command {
  const keys = new Command('keys');
  const create = onDatabase(
    keys.command('create'),
    async (deps, flags: NewKeyFlags & { account: string }) => {
      const { account, label } = flags;
      const expiresAt = parseExpiry(flags, deps.clock.now());
      const { key, record } = await createKey(deps, account, { label, expiresAt });
      printNewKey(key, record.id, flags);
    },
  );
  withNewKeyFlags(create.option('--account <name>', 'the account that it opens', DEFAULT_ACCOUNT));
  withJson(
    onDatabase(keys.command('list'), async ({ store: { read }, clock }, flags: JsonFlag) => {
      const accounts = await read.credentials.listAccounts();
      const names = new Map(accounts.map(({ id, name }) => [id, name]));
      const owner: Column<ApiKeyRecord> = {
        head: 'ACCOUNT',
        key: 'account',
        value: ({ accountId }) => names.get(accountId) ?? accountId,
      };
      printRecords(await read.credentials.listKeys(), keyColumns(owner, clock.now()), flags);
    }),
  ).description('list the keys');
  onDatabase(keys.command('revoke <id>'), async (deps, id: string) =>
    printRevoked(id, (await revokeKey(deps, id)).revokedAt),
  ).description('end a key, and every token bought with it; a running server follows within seconds');
  return keys;
}
