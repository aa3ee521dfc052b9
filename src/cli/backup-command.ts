import { resolve } from 'node:path';
import { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import { systemClock } from '../runtime/system.ts';
import { backUpDatabase } from '../store/sqlite/backup.ts';
import { Fatal } from './fatal.ts';
import { withDatabase } from './keys-command.ts';
import type { StoreFlags } from './open-store.ts';
import { printLine } from './print.ts';

/** `berth backup`: a copy of the database that `berth serve` may be writing to meanwhile. */
export function backupCommand(): Command {
  return withDatabase(new Command('backup').argument('<file>', 'the copy; never one that is there'))
    .option('--json', 'print one line of JSON')
    .action(async (file: string, { config: configFile, database, json }: StoreFlags & { json?: true }) => {
      const { config } = loadConfig({ file: configFile, flags: { database }, env: process.env });
      if (isPostgres(config.database))
        throw new Fatal(
          'A PostgreSQL database is backed up with its own tools, `pg_dump` for one: docs/backup.md says what to do after a restore.',
        );
      const target = resolve(file);
      const takenAt = systemClock.now();
      const { bytes } = await backUpDatabase(sqlitePath(config.database), target, takenAt);
      const time = new Date(takenAt).toISOString();
      if (json) printLine(JSON.stringify({ file: target, bytes, taken_at: time }));
      else
        printLine(
          `The database as of ${time} is in ${target} (${bytes} bytes). Keep it as secret as the database.`,
        );
    });
}
