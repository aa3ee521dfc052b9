import type { Store } from '../../src/marketplace/model/store.ts';
import { resolveTeam } from '../../src/marketplace/teams/access.ts';
import { createKey } from '../../src/marketplace/teams/keys.ts';
import { addUser } from '../../src/marketplace/teams/users.ts';
import { openMarketplaceSqliteStore } from '../../src/store/marketplace/sqlite/store.ts';
import { Scheduler } from '../../test/support/time/scheduler.ts';
import { Chance } from '../kernel/chance.ts';
import { prepareFile } from '../kernel/database-file.ts';
import type { DatabaseTemplate } from '../kernel/shared-database.ts';
import type { DatabaseKind } from '../runner/subject.ts';

/** A user with a team of their own. */
export interface MarketUser {
  name: string;
  userId: string;
  teamId: string;
  key: string;
}

/** What every run of a process starts from: a database with two users in it. */
export interface MarketPrepared {
  template: DatabaseTemplate<Store>;
  users: readonly MarketUser[];
}

const NAMES = ['alpha', 'beta'];

/** Makes the database that every run copies: migrated, checked and filled once. */
export async function prepareMarket(on: DatabaseKind = 'sqlite'): Promise<MarketPrepared> {
  const users: MarketUser[] = [];
  const fill = async (store: Store): Promise<void> => {
    const deps = { store, clock: new Scheduler().clock, random: new Chance('market-accounts') };
    for (const name of NAMES) {
      const email = `${name}@example.com`;
      const { id: userId } = await addUser(deps, {
        email,
        mayMakeKeys: true,
        wantsDeploymentMail: true,
        createLimit: -1,
      });
      const { key } = await createKey(deps, email);
      users.push({ name, userId, key, teamId: await resolveTeam(deps, { userId }) });
    }
  };
  if (on === 'sqlite') return { template: await prepareFile(openMarketplaceSqliteStore, fill), users };
  const { preparePostgres } = await import('../kernel/postgres-database.ts');
  const { openMarketplacePostgresStore } = await import('../../src/store/marketplace/postgres/store.ts');
  return { template: await preparePostgres('marketplace', openMarketplacePostgresStore, fill), users };
}
