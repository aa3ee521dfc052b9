import { Command } from 'commander';
import { createKey, revokeKey } from '../orchestrator/accounts/accounts.ts';
import type { ApiKeyRecord } from '../orchestrator/accounts/credential-records.ts';
import { Fatal } from './fatal.ts';
import { DEFAULT_ACCOUNT } from './first-start.ts';
import { type StoreFlags, withStore } from './open-store.ts';
import { printLine, printTable } from './print.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** `berth keys`: several keys are valid at once, so that they rotate without downtime (O: Authentication, 2). */
export function keysCommand(): Command {
  const keys = new Command('keys').description('API keys: make, list and revoke them');
  withDatabase(keys.command('create'))
    .description('make a key and print it: the only time that it is shown')
    .option('--account <name>', 'the account that it opens', DEFAULT_ACCOUNT)
    .option('--label <text>', 'what it is for')
    .option('--expires <when>', 'when it ends: a number of days ("30d") or an RFC 3339 time')
    .option('--json', 'print one line of JSON')
    .action(
      async (options: StoreFlags & { account: string; label?: string; expires?: string; json?: true }) =>
        withStore(options, async (deps) => {
          const expiresAt =
            options.expires === undefined ? undefined : parseExpiry(options.expires, deps.clock.now());
          const { key, record } = await createKey(deps, options.account, {
            ...(options.label !== undefined && { label: options.label }),
            ...(expiresAt !== undefined && { expiresAt }),
          });
          if (options.json) printLine(JSON.stringify({ id: record.id, api_key: key }));
          else printLine(`${key}\n\nThis is key ${record.id}. Keep it now: it is not shown again.`);
        }),
    );
  withDatabase(keys.command('list'))
    .description('list the keys')
    .action(async (options: StoreFlags) =>
      withStore(options, async ({ store, clock }) => {
        const accounts = new Map(
          (await store.read.credentials.listAccounts()).map(({ id, name }) => [id, name]),
        );
        const records = await store.read.credentials.listKeys();
        printTable(
          ['ID', 'ACCOUNT', 'KEY', 'LABEL', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'],
          records.map((record) => [
            record.id,
            accounts.get(record.accountId) ?? record.accountId,
            `${record.prefix}…${record.lastFour}`,
            record.label ?? '',
            stateOf(record, clock.now()),
            toTime(record.createdAt),
            toTime(record.expiresAt),
            toTime(record.lastUsedAt),
          ]),
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

function parseExpiry(text: string, now: number): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : now + Number(days) * DAY_MS;
  if (Number.isNaN(at) || at <= now)
    throw new Fatal(
      `--expires ${text}: give a number of days such as 30d, or a time to come such as 2030-01-31T00:00:00Z.`,
    );
  return at;
}

function stateOf({ revokedAt, expiresAt }: ApiKeyRecord, now: number): string {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}

export function toTime(ms: number | null): string {
  return ms === null ? '-' : new Date(ms).toISOString();
}
