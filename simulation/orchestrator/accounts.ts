import { join } from 'node:path';
import { createAccount, createKey } from '../../src/orchestrator/accounts/accounts.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { Chance } from '../kernel/chance.ts';
import { makeFolder } from './replicas/database.ts';
import { type Prepared, START_AT } from './world.ts';

/** One tenant's account, with its first key. */
export interface Account {
  id: string;
  key: string;
  keyId: string;
}

export const TENANTS = ['alpha', 'beta'] as const;
export type TenantName = (typeof TENANTS)[number];
export type Accounts = Readonly<Record<TenantName, Account>>;

/** Makes the database that every run copies: checked and filled once. */
export async function prepare(): Promise<Prepared> {
  const folder = makeFolder();
  const database = join(folder, 'template.db');
  const store = openSqliteStore(database);
  const deps = {
    store,
    random: new Chance('accounts'),
    clock: { now: () => START_AT, setTimer: () => ({ cancel: () => undefined }) },
  };
  const make = async (name: TenantName): Promise<Account> => {
    const { id } = await createAccount(deps, name);
    const { key, record } = await createKey(deps, name);
    return { id, key, keyId: record.id };
  };
  const accounts = { alpha: await make('alpha'), beta: await make('beta') };
  await store.close();
  return { folder, database, accounts };
}
