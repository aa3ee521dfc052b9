import { Command } from 'commander';
import { type ApiKeyRow, listApiKeys } from '../orchestrator/operate/views/accounts.ts';
import { withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type ListFlags, printRecords, withList, withNames } from './print-records.ts';

/**
 * `berth keys`: manages API keys. Several are valid at once, so that they rotate without downtime (O: Authentication,
 * 2).
 */
export function keysCommand(): Command {
  const keys = new Command('keys');
  withList(
    onDatabase(keys.command('ls'), async ({ store: { read }, clock }, flags: ListFlags) => {
      printRecords(await listApiKeys(read, clock.now()), columns, flags, 'There is no key.');
    }),
  ).description('list the keys');
  return withActions(keys);
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
