import { existsSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { sqlitePath } from '../config/schema.ts';
import type { Clock, Random } from '../orchestrator/ports/clock.ts';
import type { Store } from '../orchestrator/ports/store.ts';
import { systemClock, systemRandom } from '../runtime/system.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { Fatal } from './fatal.ts';

export interface StoreFlags {
  config?: string;
  database?: string;
}

/** Opens the database that `berth serve` with the same flags uses, also while it runs, and closes it after `body`. */
export async function withStore<T>(
  flags: StoreFlags,
  body: (deps: { store: Store; clock: Clock; random: Random }) => Promise<T>,
): Promise<T> {
  const { config } = loadConfig({
    file: flags.config,
    flags: { database: flags.database },
    env: process.env,
  });
  const path = sqlitePath(config.database);
  if (!existsSync(path))
    throw new Fatal(`There is no database ${path} yet: start \`berth serve\` once, or give --database.`);
  const store = openSqliteStore(path);
  try {
    return await body({ store, clock: systemClock, random: systemRandom });
  } finally {
    await store.close();
  }
}
