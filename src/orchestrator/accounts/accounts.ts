import { describeApiKey, digestSecret, generateApiKey } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { AccountRecord, ApiKeyRecord } from '../model/records.ts';
import type { Store, Transaction } from '../model/store.ts';
import { hashPassword } from './password-checks.ts';

/** The account that the first start creates. */
export const DEFAULT_ACCOUNT = 'default';

/** An operator's request that cannot be carried out. The message says why. */
export class AccountsError extends Fatal {
  override readonly name = 'AccountsError';
  /** The error code in the reply of the operator API. */
  readonly code: 'invalid_request' | 'not_found' | 'invalid_state';

  constructor(message: string, code: AccountsError['code'] = 'invalid_request') {
    super(message);
    this.code = code;
  }
}

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const ID = /^acct-[0-9a-f]{20}$/;
const MIN_PASSWORD_LENGTH = 12;

/** Whether the text has the format of an account id. */
export function isAccountId(id: string): boolean {
  return ID.test(id);
}

/**
 * Creates an account. `id` is for an account that is missing from a restored database: its resources on the platform
 * carry its id.
 *
 * @throws {AccountsError} if the name or the id is taken or invalid
 */
export async function createAccount(
  { store, ...parts }: Deps,
  name: string,
  id?: string,
): Promise<AccountRecord> {
  if (!NAME.test(name))
    throw new AccountsError(
      `"${name}" is not a valid account name: use 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit.`,
    );
  if (id !== undefined && !isAccountId(id))
    throw new AccountsError(
      `"${id}" is not a valid account id: write acct- followed by 20 hexadecimal digits (0-9, a-f).`,
    );
  return store.transact(async (tx) => {
    const known = await tx.credentials.accountByName(name);
    if (known !== null) throw new AccountsError(known.closedAt === null ? taken(name) : stillTaken(known));
    if (id !== undefined && (await tx.credentials.accountById(id)) !== null)
      throw new AccountsError(`An account with the id ${id} already exists.`);
    return addAccount(tx, parts, name, id);
  });
}

/** Writes a new account. Its name is valid and not taken. */
async function addAccount(
  tx: Transaction,
  { clock, random }: Omit<Deps, 'store'>,
  name: string,
  id = `acct-${random.bytes(10).toString('hex')}`,
): Promise<AccountRecord> {
  const record = { id, name, passwordHash: null, createdAt: clock.now(), closedAt: null };
  await tx.credentials.insertAccount(record);
  return record;
}

/**
 * Sets the password of an account, and deletes the tokens obtained with the old one. They no longer count against the
 * quota.
 */
export async function setPassword(
  { store, random }: Deps,
  accountName: string,
  password: string,
): Promise<void> {
  if (password.length < MIN_PASSWORD_LENGTH)
    throw new AccountsError(`A password needs at least ${MIN_PASSWORD_LENGTH} characters.`);
  const hash = await hashPassword(password, random);
  await store.transact(async (tx) => {
    const account = await openAccount(tx, accountName);
    await tx.credentials.setPasswordHash(account.id, hash);
    if (account.passwordHash !== null)
      await tx.credentials.deleteTokensBoughtWith(account.id, digestSecret(account.passwordHash));
  });
}

interface KeyOptions {
  label?: string | undefined;
  expiresAt?: number | null;
}

/** Makes a key and returns it. It is not shown again. Several may be valid at once (O: Authentication, 2). */
export async function createKey(
  { store, ...parts }: Deps,
  accountName: string,
  options: KeyOptions = {},
): Promise<{ key: string; record: ApiKeyRecord }> {
  return store.transact(async (tx) => {
    const account = await openAccount(tx, accountName);
    return addKey(tx, parts, account.id, options);
  });
}

/** The account of that name or id. It cannot be closed before the end of the transaction. @throws {AccountsError} */
async function openAccount(
  { credentials, accountUse }: Pick<Transaction, 'credentials' | 'accountUse'>,
  nameOrId: string,
): Promise<AccountRecord> {
  const found = (await credentials.accountById(nameOrId)) ?? (await credentials.accountByName(nameOrId));
  if (found === null) throw noAccount(nameOrId);
  await accountUse.keepOpen(found.id);
  // It may have been closed before the lock was acquired.
  const account = await credentials.accountById(found.id);
  if (account === null) throw noAccount(nameOrId);
  if (account.closedAt === null) return account;
  throw new AccountsError(
    `Account "${account.name}" was permanently deleted ${atTime(account)} and cannot get a key or a password. Create another account.`,
    'invalid_state',
  );
}

/** Writes a new key of an existing account. */
async function addKey(
  tx: Transaction,
  { clock, random }: Omit<Deps, 'store'>,
  accountId: string,
  options: KeyOptions,
): Promise<{ key: string; record: ApiKeyRecord }> {
  const key = generateApiKey(random);
  const record: ApiKeyRecord = {
    id: `key-${random.bytes(6).toString('hex')}`,
    accountId,
    digest: digestSecret(key),
    ...describeApiKey(key),
    label: options.label ?? null,
    createdAt: clock.now(),
    expiresAt: options.expiresAt ?? null,
    revokedAt: null,
    lastUsedAt: null,
  };
  await tx.credentials.insertKey(record);
  return { key, record };
}

/**
 * Ensures an account and a credential. `apiKey` is the key made now, to be shown once. It is null if keys exist, or the
 * environment has one. `accountId` is the environment key's account: the default one, or else the oldest. It is null if
 * the default one was closed for good. If several servers start on an empty database, one creates both.
 */
export async function ensureAccess(
  { store, ...parts }: Deps,
  environmentKey: Buffer | undefined,
): Promise<{ apiKey: string | null; accountId: string | null }> {
  return store.transact(async (tx) => {
    const accounts = await tx.credentials.listAccounts();
    const wasClosed = (await tx.marks.get('default_account_closed')) !== null;
    const byName = accounts.find(({ name, closedAt }) => name === DEFAULT_ACCOUNT && closedAt === null);
    const existing = byName ?? (wasClosed ? undefined : accounts.find(({ closedAt }) => closedAt === null));
    if (existing === undefined && (wasClosed || accounts.length > 0))
      return { apiKey: null, accountId: null };
    const { id: accountId } = existing ?? (await addAccount(tx, parts, DEFAULT_ACCOUNT));
    const hasWayIn = environmentKey !== undefined || (await tx.credentials.listKeys()).length > 0;
    const apiKey = hasWayIn ? null : (await addKey(tx, parts, accountId, { label: 'first start' })).key;
    return { apiKey, accountId };
  });
}

/**
 * Ends a key and deletes the tokens obtained with it. They no longer count against the quota. A second revocation keeps
 * the first time.
 */
export async function revokeKey({ store, clock }: Deps, id: string): Promise<ApiKeyRecord> {
  return store.transact(async (tx) => {
    const record = (await tx.credentials.listKeys()).find((key) => key.id === id);
    if (record === undefined)
      throw new AccountsError(`There is no key "${id}": see \`berth keys ls\`.`, 'not_found');
    if (record.revokedAt !== null) return record;
    const revokedAt = clock.now();
    await tx.credentials.revokeKey(id, revokedAt);
    await tx.credentials.deleteTokensBoughtWith(record.accountId, record.digest);
    return { ...record, revokedAt };
  });
}

function taken(name: string): string {
  return `An account named "${name}" already exists.`;
}

function stillTaken(account: AccountRecord): string {
  return (
    `The name "${account.name}" stays reserved: its account was permanently deleted ${atTime(account)}, and the rows of its resources ` +
    'are kept for retention.tombstones_days. Use another name.'
  );
}

function atTime({ closedAt }: AccountRecord): string {
  return `at ${new Date(closedAt ?? 0).toISOString()}`;
}

function noAccount(name: string): AccountsError {
  return new AccountsError(`There is no account "${name}": see \`berth accounts ls\`.`, 'not_found');
}
