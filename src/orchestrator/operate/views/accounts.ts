import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { AccountRecord } from '../../model/records.ts';
import type { Reader, Store } from '../../model/store.ts';

/** A tenant. */
const accountRowSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    has_password: z.boolean(),
    created_at: timestampSchema,
    closed_at: timeOrNullSchema.meta({
      description: 'When it was permanently deleted; it has no access. Null: it is open.',
    }),
    instances: z.int().meta({ description: 'Instances that are not destroyed.' }),
  })
  .meta({ id: 'Account' });
export type AccountRow = z.infer<typeof accountRowSchema>;

const accountListSchema = z.object({ accounts: z.array(accountRowSchema) }).meta({ id: 'AccountList' });

/** Lists the accounts, oldest first. */
async function listAccounts(read: Pick<Reader, 'credentials' | 'instances'>): Promise<AccountRow[]> {
  const [accounts, counts] = await Promise.all([
    read.credentials.listAccounts(),
    read.instances.countByAccount(),
  ]);
  const byAccount = new Map(counts.map(({ accountId, count }) => [accountId, count]));
  return accounts.map(({ id, name, passwordHash, createdAt, closedAt }) => ({
    id,
    name,
    has_password: passwordHash !== null,
    created_at: toTime(createdAt),
    closed_at: toTime(closedAt),
    instances: byAccount.get(id) ?? 0,
  }));
}

/** The account with that id or name. Null if there is none. */
export async function findAccount(
  { credentials }: Pick<Reader, 'credentials'>,
  nameOrId: string,
): Promise<AccountRecord | null> {
  return (await credentials.accountById(nameOrId)) ?? credentials.accountByName(nameOrId);
}

/** An API key without its secret part. */
const apiKeyRowSchema = z
  .object({
    id: z.string(),
    account: z.string().meta({ description: 'The name of the account.' }),
    key: z.string().meta({ description: 'The first and last characters of the key.' }),
    label: z.string().nullable(),
    state: z.enum(['valid', 'expired', 'revoked']),
    created_at: timestampSchema,
    expires_at: timeOrNullSchema,
    last_used_at: timeOrNullSchema,
  })
  .meta({ id: 'ApiKey' });
export type ApiKeyRow = z.infer<typeof apiKeyRowSchema>;

const apiKeyListSchema = z.object({ keys: z.array(apiKeyRowSchema) }).meta({ id: 'ApiKeyList' });

/** The keys of one account or of all, oldest first. */
async function listApiKeys(
  { credentials }: Pick<Reader, 'credentials'>,
  now: number,
  accountId?: string,
): Promise<ApiKeyRow[]> {
  const [accounts, keys] = await Promise.all([credentials.listAccounts(), credentials.listKeys(accountId)]);
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  return keys.map((key) => ({
    id: key.id,
    account: names.get(key.accountId) ?? key.accountId,
    key: `${key.prefix}…${key.lastFour}`,
    label: key.label,
    state: stateOfKey(key, now),
    created_at: toTime(key.createdAt),
    expires_at: toTime(key.expiresAt),
    last_used_at: toTime(key.lastUsedAt),
  }));
}

/** The state of a key. A revoked key stays `revoked` after its expiry. */
function stateOfKey(
  { revokedAt, expiresAt }: { revokedAt: number | null; expiresAt: number | null },
  now: number,
): ApiKeyRow['state'] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
}

export const accountsView = defineView({
  name: 'listAccounts',
  tag: 'Accounts',
  path: '/accounts',
  summary: 'Accounts',
  description: 'Oldest first.',
  reply: ['The accounts.', accountListSchema],
  commands: [
    {
      name: 'accounts ls',
      description: 'list the accounts',
      list: {},
    },
  ],
  list: {
    rows: 'accounts',
    title: 'Accounts',
    none: 'There is no account.',
    columns: [
      'name',
      { field: 'id', isWide: true },
      { field: 'instances', page: ({ id }) => `/instances?account=${encodeURIComponent(id)}` },
      'has_password',
      'created_at',
      'closed_at',
    ],
  },
  read: async ({ store }: Deps) => ({ accounts: await listAccounts(store.read) }),
});

export const keysView = defineView({
  name: 'listKeys',
  tag: 'Accounts',
  path: '/keys',
  summary: 'Keys of accounts',
  description: 'Of one account, or of all; oldest first.',
  input: { account: z.string().optional().meta({ description: 'The name or the id of an account.' }) },
  errors: ['not_found'],
  reply: ['The keys.', apiKeyListSchema],
  commands: [
    {
      name: 'keys ls',
      description: 'list the keys',
      list: {},
    },
  ],
  list: {
    rows: 'keys',
    title: 'Keys of accounts',
    none: 'There is no key: see `berth keys create`.',
    columns: [
      { field: 'id', kind: 'id' },
      'account',
      'key',
      'label',
      'state',
      'created_at',
      'expires_at',
      'last_used_at',
    ],
  },
  read: async ({ store: { read }, clock }: Deps, { account }) => ({
    keys: await listApiKeys(read, clock.now(), await idOfAccount(read, account)),
  }),
});

/** The id of the account of this name or id. @throws {ApiError} `not_found` */
export async function idOfAccount(
  read: Pick<Reader, 'credentials'>,
  nameOrId: string | undefined,
): Promise<string | undefined> {
  const found = nameOrId === undefined ? undefined : await findAccount(read, nameOrId);
  if (found === null)
    throw new ApiError('not_found', `There is no account ${nameOrId}: see \`berth accounts ls\`.`);
  return found?.id;
}
