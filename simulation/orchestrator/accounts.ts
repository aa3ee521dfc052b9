import { createAccount, createKey } from '../../src/orchestrator/accounts/accounts.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { Scheduler } from '../../test/support/time/scheduler.ts';
import { Chance } from '../kernel/chance.ts';
import { prepareFile } from '../kernel/database-file.ts';
import type { DatabaseTemplate } from '../kernel/shared-database.ts';
import type { DatabaseKind } from '../runner/subject.ts';

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
  template: DatabaseTemplate<Store>;
  accounts: Accounts;
}

/** Makes the database that every run copies: migrated, checked and filled once. */
export async function prepareOrchestrator(on: DatabaseKind = 'sqlite'): Promise<Prepared> {
  const accounts = {} as Record<TenantName, Account>;
  const fill = async (store: Store): Promise<void> => {
    const deps = { store, random: new Chance('accounts'), clock: new Scheduler().clock };
    for (const name of TENANTS) {
      const { id } = await createAccount(deps, name);
      const { key, record } = await createKey(deps, name);
      accounts[name] = { id, key, keyId: record.id };
    }
  };
  if (on === 'sqlite') return { template: await prepareFile(openSqliteStore, fill), accounts };
  const { preparePostgres } = await import('../kernel/postgres-database.ts');
  const { openPostgresStore } = await import('../../src/store/postgres/store.ts');
  return { template: await preparePostgres('orchestrator', openPostgresStore, fill), accounts };
}
