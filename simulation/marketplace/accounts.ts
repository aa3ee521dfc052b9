import { join } from 'node:path';
import { resolveTeam } from '../../src/marketplace/teams/access.ts';
import { createKey } from '../../src/marketplace/teams/keys.ts';
import { addUser } from '../../src/marketplace/teams/users.ts';
import { openMarketplaceSqliteStore } from '../../src/store/marketplace/sqlite/store.ts';
import { Scheduler } from '../../test/support/time/scheduler.ts';
import { Chance } from '../kernel/chance.ts';
import { makeFolder } from '../kernel/database-file.ts';

/** A user with a team of their own. */
export interface MarketUser {
  name: string;
  userId: string;
  teamId: string;
  key: string;
}

/** What every run of a process starts from: a database with two users in it. */
export interface MarketPrepared {
  folder: string;
  database: string;
  users: readonly MarketUser[];
}

const NAMES = ['alpha', 'beta'];

/** Makes the database that every run copies: migrated, checked and filled once. */
export async function prepareMarket(): Promise<MarketPrepared> {
  const folder = makeFolder();
  const database = join(folder, 'market-template.db');
  const store = openMarketplaceSqliteStore(database);
  const deps = { store, clock: new Scheduler().clock, random: new Chance('market-accounts') };
  const users: MarketUser[] = [];
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
  await store.close();
  return { folder, database, users };
}
