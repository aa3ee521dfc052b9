import { Command } from 'commander';
import { orchestratorStores } from '../compose/stores/orchestrator.ts';
import type { Stores } from '../compose/stores/stores.ts';
import { tryUpgrade, type Upgrade, upgrade } from '../compose/stores/upgrade.ts';
import { printLine } from '../runtime/print.ts';
import { checkDatabaseCommand } from './check-database-command.ts';
import { onlyLocal, withContext } from './context/contexts.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

/** `berth upgrade` */
export function orchestratorUpgradeCommand(): Command {
  return upgradeCommand('berth', orchestratorStores, loadFor);
}

/** `berth check-database` */
export function checkOrchestratorCommand(): Command {
  return checkDatabaseCommand('berth', orchestratorStores, loadFor);
}

/** Runs the migrations of this version's first start. `--dry-run` can be used while the server runs. */
export function upgradeCommand<Store extends { close(): Promise<void> }>(
  product: 'berth' | 'marketplace',
  stores: Stores<Store>,
  load: (command: Command) => { database: string },
): Command {
  const command = withOutput(withDatabase(new Command('upgrade'), product)).option(
    '--dry-run',
    'try it on a copy or in a transaction that is rolled back, and change nothing',
  );
  return withContext(command).action(
    onlyLocal(async (flags: OutputFlag & { dryRun?: true }) => {
      const { dryRun } = flags;
      const { database } = load(command);
      const begunAt = performance.now();
      const found = dryRun ? await tryUpgrade(stores, database) : await upgrade(stores, database);
      const { version, newest, changes } = found;
      if (isData(flags)) printData(flags, { dry_run: dryRun === true, version, newest, changes });
      else printUpgrade(found, dryRun === true, (performance.now() - begunAt) / 1000);
    }),
  );
}

function printUpgrade({ version, newest, changes }: Upgrade, isTrial: boolean, seconds: number): void {
  if (changes.length === 0) {
    printLine(`The database is at version ${version}, the version of this program: there is nothing to do.`);
    return;
  }
  printLine(
    isTrial
      ? `The database is at version ${version}, this program at ${newest}. Its first start changes the tables; tried in ${seconds.toFixed(1)} s and rolled back:`
      : `The database was at version ${version}, and is at ${newest} now:`,
  );
  for (const { version: to, name } of changes) printLine(`  ${to}  ${name}`);
  if (isTrial) printLine('Make a backup first: an older program refuses the changed tables.');
}
