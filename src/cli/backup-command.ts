import { resolve } from 'node:path';
import { Command } from 'commander';
import { backUp, orchestratorStores } from '../compose/open-store.ts';
import { printLine } from '../runtime/print.ts';
import { systemClock } from '../runtime/system.ts';
import { checkDatabaseCommand } from './check-database-command.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { type JsonFlag, printJson, toJsonTime, withJson } from './print-records.ts';

/** `berth backup`: a copy of the database that `berth serve` may be writing to meanwhile. */
export function backupCommand(): Command {
  return withJson(
    withDatabase(new Command('backup').argument('<file>', 'the copy; it must not exist yet')),
  ).action(async (file: string, { json }: JsonFlag, command: Command) => {
    const { database } = loadFor(command);
    const target = resolve(file);
    const takenAt = systemClock.now();
    const bytes = await backUp(database, target, takenAt);
    const time = toJsonTime(takenAt);
    if (json) printJson({ file: target, bytes, taken_at: time });
    else
      printLine(
        `The database as of ${time} is in ${target} (${bytes} bytes). Keep it as secret as the database.`,
      );
  });
}

/** `berth check-database` */
export function checkCommand(): Command {
  return checkDatabaseCommand('berth', orchestratorStores, loadFor);
}
