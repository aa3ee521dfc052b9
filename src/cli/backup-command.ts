import { resolve } from 'node:path';
import { Command } from 'commander';
import { backUp, orchestratorStores } from '../compose/stores/orchestrator.ts';
import { toTime } from '../operator-kit/views/values.ts';
import { systemClock } from '../runtime/system.ts';
import { auditBeside } from './audit-beside.ts';
import { checkDatabaseCommand } from './check-database-command.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth backup`: copies the database, even while `berth serve` writes to it. */
export function backupCommand(): Command {
  return withOutput(
    withDatabase(new Command('backup').argument('<file>', 'the copy; it must not exist yet')),
  ).action(async (file: string, flags: OutputFlag, command: Command) => {
    const { database } = loadFor(command);
    const target = resolve(file);
    const takenAt = systemClock.now();
    const action = { action: 'database.backup', subject: target };
    const bytes = await auditBeside(database, action, () => backUp(database, target, takenAt));
    const time = toTime(takenAt);
    const sentence = `The database as of ${time} is in ${target} (${bytes} bytes). Keep it as secret as the database.`;
    printDone(flags, { file: target, bytes, taken_at: time }, sentence);
  });
}

/** `berth check-database` */
export function checkCommand(): Command {
  return checkDatabaseCommand('berth', orchestratorStores, loadFor);
}
