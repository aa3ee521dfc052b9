import { Command } from 'commander';
import { audited } from '../operators/audit.ts';
import { createKey, DEFAULT_ACCOUNT, revokeKey } from '../orchestrator/accounts/accounts.ts';
import { type ApiKeyRow, listApiKeys } from '../orchestrator/operate/views/accounts.ts';
import { type NewKeyFlags, parseExpiry, printNewKey, printRevoked, withNewKeyFlags } from './keys.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  fieldColumns,
  type ListFlags,
  type OutputFlag,
  printRecords,
  withList,
  withNames,
  withOutput,
} from './print-records.ts';

/** `berth keys`: several keys are valid at once, so that they rotate without downtime (O: Authentication, 2). */
export function keysCommand(): Command {
  const keys = new Command('keys');
  const create = onDatabase(
    keys.command('create'),
    async (deps, flags: NewKeyFlags & { account: string }) => {
      const { account, label } = flags;
      const expiresAt = parseExpiry(flags, deps.clock.now());
      const action = {
        action: 'key.create',
        subject: account,
        detail: { ...(label !== undefined && { label }) },
      };
      const { key, record } = await audited(deps, localActor(), action, (store) =>
        createKey({ ...deps, store }, account, { label, expiresAt }),
      );
      printNewKey(key, record.id, flags);
    },
  );
  withNewKeyFlags(create.option('--account <name>', 'the account of the key', DEFAULT_ACCOUNT));
  withList(
    onDatabase(keys.command('ls'), async ({ store: { read }, clock }, flags: ListFlags) => {
      printRecords(await listApiKeys(read, clock.now()), columns, flags, 'There is no key.');
    }),
  ).description('list the keys');
  withOutput(
    onDatabase(keys.command('revoke <id>'), async (deps, id: string, flags: OutputFlag) => {
      const action = { action: 'key.revoke', subject: id };
      const { revokedAt } = await audited(deps, localActor(), action, (store) =>
        revokeKey({ ...deps, store }, id),
      );
      printRevoked(flags, id, revokedAt);
    }),
  ).description('end a key, and every token bought with it; a running server follows within seconds');
  return keys;
}

const columns = withNames(
  fieldColumns<ApiKeyRow>(
    {
      ID: 'id',
      ACCOUNT: 'account',
      KEY: 'key',
      LABEL: 'label',
      STATE: 'state',
      CREATED: 'created_at',
      EXPIRES: 'expires_at',
      'LAST USED': 'last_used_at',
    },
    ['label'],
  ),
  'account',
  'label',
);
