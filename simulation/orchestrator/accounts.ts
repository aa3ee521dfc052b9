import { join } from 'node:path';
import { createAccount, createKey } from '../../src/orchestrator/accounts/accounts.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { Scheduler } from '../../test/support/time/scheduler.ts';
import { Chance } from '../kernel/chance.ts';
import { makeFolder } from '../kernel/database-file.ts';

/** One tenant's account, with its first key. */
export interface Account {
  id: string;
  key: string;
  keyId: string;
}

export const TENANTS = ['alpha', 'beta'] as const;
export type TenantName = (typeof TENANTS)[number];
export type Accounts = Readonly<Record<TenantName, Account>>;

/** What every run of a process starts from: a database with two accounts in it. */
export interface Prepared {
  folder: string;
  database: string;
  accounts: Accounts;
}

/** Makes the database that every run copies: migrated, checked and filled once. */
export async function prepareOrchestrator(): Promise<Prepared> {
  const folder = makeFolder();
  const database = join(folder, 'template.db');
  const store = openSqliteStore(database);
  const deps = { store, random: new Chance('accounts'), clock: new Scheduler().clock };
  const make = async (name: TenantName): Promise<Account> => {
    const { id } = await createAccount(deps, name);
    const { key, record } = await createKey(deps, name);
    return { id, key, keyId: record.id };
  };
  const accounts = { alpha: await make('alpha'), beta: await make('beta') };
  await store.close();
  return { folder, database, accounts };
}
