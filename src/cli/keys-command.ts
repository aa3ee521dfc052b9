import { Command } from 'commander';
import { createKey, revokeKey } from '../orchestrator/accounts/accounts.ts';
import type { ApiKeyRecord } from '../orchestrator/model/credential-records.ts';
import { DEFAULT_ACCOUNT } from './first-start.ts';
import { type StoreFlags, withStore } from './open-store.ts';
import { parseTimeToCome } from './parse-time.ts';
import { printLine } from './print.ts';
import { type Column, type JsonFlag, printRecords, toJsonTime, withJson } from './print-records.ts';

/** `berth keys`: several keys are valid at once, so that they rotate without downtime (O: Authentication, 2). */
export function keysCommand(): Command {
  const keys = new Command('keys');
  withDatabase(keys.command('create'))
    .description('make a key and print it: the only time that it is shown')
    .option('--account <name>', 'the account that it opens', DEFAULT_ACCOUNT)
    .option('--label <text>', 'what it is for')
    .option('--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time')
    .option('--json', 'print one line of JSON')
    .action(
      async (options: StoreFlags & { account: string; label?: string; expires?: string; json?: true }) =>
        withStore(options, async (deps) => {
          const expiresAt =
            options.expires === undefined
              ? undefined
              : parseTimeToCome('--expires', options.expires, deps.clock.now());
          const { key, record } = await createKey(deps, options.account, {
            ...(options.label !== undefined && { label: options.label }),
            ...(expiresAt !== undefined && { expiresAt }),
          });
          if (options.json) printLine(JSON.stringify({ id: record.id, api_key: key }));
          else printLine(`${key}\n\nThis is key ${record.id}. Keep it now: it is not shown again.`);
        }),
    );
  withJson(withDatabase(keys.command('list')))
    .description('list the keys')
    .action(async (options: StoreFlags & JsonFlag) =>
      withStore(options, async ({ store, clock }) => {
        const accounts = new Map(
          (await store.read.credentials.listAccounts()).map(({ id, name }) => [id, name]),
        );
        const records = await store.read.credentials.listKeys();
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            {
              head: 'ACCOUNT',
              key: 'account',
              value: ({ accountId }) => accounts.get(accountId) ?? accountId,
            },
            ...keyColumns<ApiKeyRecord>(clock.now()),
          ],
          options,
        );
      }),
    );
  withDatabase(keys.command('revoke <id>'))
    .description('end a key, and every token bought with it; a running server follows within seconds')
    .action(async (id: string, options: StoreFlags) =>
      withStore(options, async (deps) => {
        const { revokedAt } = await revokeKey(deps, id);
        printLine(`Key ${id} is revoked since ${toTime(revokedAt)}.`);
      }),
    );
  return keys;
}

/** The two options by which a command finds the database. */
export function withDatabase(command: Command): Command {
  return command
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/berth.db')
    .option('--config <file>', 'berth.yaml');
}

type ShownKey = Pick<
  ApiKeyRecord,
  'prefix' | 'lastFour' | 'label' | 'revokedAt' | 'expiresAt' | 'createdAt' | 'lastUsedAt'
>;

/** What is shown of a key of either product, after whose it is. */
export function keyColumns<T extends ShownKey>(now: number): Column<T>[] {
  return [
    { head: 'KEY', key: 'key', value: ({ prefix, lastFour }) => `${prefix}…${lastFour}` },
    { head: 'LABEL', key: 'label', value: ({ label }) => label, text: ({ label }) => label ?? '' },
    { head: 'STATE', key: 'state', value: (record) => stateOf(record, now) },
    { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
    { head: 'EXPIRES', key: 'expires_at', value: ({ expiresAt }) => toJsonTime(expiresAt) },
    { head: 'LAST USED', key: 'last_used_at', value: ({ lastUsedAt }) => toJsonTime(lastUsedAt) },
  ];
}

function stateOf({ revokedAt, expiresAt }: Pick<ShownKey, 'revokedAt' | 'expiresAt'>, now: number): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}

export function toTime(ms: number | null): string {
  return ms === null ? '-' : new Date(ms).toISOString();
}
