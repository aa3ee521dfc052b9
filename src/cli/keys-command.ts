import { Command } from 'commander';
import { createKey, DEFAULT_ACCOUNT, revokeKey } from '../orchestrator/accounts/accounts.ts';
import type { ApiKeyRecord } from '../orchestrator/model/records.ts';
import { type DatabaseFlags, onDatabase, withDatabase } from './database.ts';
import {
  keyColumns,
  type NewKeyFlags,
  parseExpiry,
  printNewKey,
  printRevoked,
  withNewKeyFlags,
} from './keys.ts';
import { type JsonFlag, printRecords, withJson } from './print-records.ts';

/** `berth keys`: several keys are valid at once, so that they rotate without downtime (O: Authentication, 2). */
export function keysCommand(): Command {
  const keys = new Command('keys');
  const create = withDatabase(keys.command('create'));
  withNewKeyFlags(create.option('--account <name>', 'the account that it opens', DEFAULT_ACCOUNT)).action(
    async (flags: DatabaseFlags & NewKeyFlags & { account: string }) =>
      onDatabase(flags, async (deps) => {
        const expiresAt = parseExpiry(flags, deps.clock.now());
        const { key, record } = await createKey(deps, flags.account, {
          ...(flags.label !== undefined && { label: flags.label }),
          ...(expiresAt !== null && { expiresAt }),
        });
        printNewKey(key, record.id, flags);
      }),
  );
  withJson(withDatabase(keys.command('list')))
    .description('list the keys')
    .action(async (flags: DatabaseFlags & JsonFlag) =>
      onDatabase(flags, async ({ store: { read }, clock }) => {
        const accounts = await read.credentials.listAccounts();
        const names = new Map(accounts.map(({ id, name }) => [id, name]));
        printRecords(
          await read.credentials.listKeys(),
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'ACCOUNT', key: 'account', value: ({ accountId }) => names.get(accountId) ?? accountId },
            ...keyColumns<ApiKeyRecord>(clock.now()),
          ],
          flags,
        );
      }),
    );
  withDatabase(keys.command('revoke <id>'))
    .description('end a key, and every token bought with it; a running server follows within seconds')
    .action(async (id: string, flags: DatabaseFlags) =>
      onDatabase(flags, async (deps) => printRevoked(id, (await revokeKey(deps, id)).revokedAt)),
    );
  return keys;
}
