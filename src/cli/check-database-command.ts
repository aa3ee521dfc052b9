import { Command } from 'commander';
import { checkDatabase, type Stores } from '../compose/stores/stores.ts';
import { onlyLocal, withContext } from './context/contexts.ts';
import { withDatabase } from './database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** Checks the file for damage, even while a server uses it. Damage is an error that ends the command. */
export function checkDatabaseCommand(
  product: 'berth' | 'marketplace',
  stores: Pick<Stores<unknown>, 'format'>,
  load: (command: Command) => { database: string },
): Command {
  const command = withOutput(withDatabase(new Command('check-database'), product));
  return withContext(command).action(
    onlyLocal(async (flags: OutputFlag) => {
      const bytes = checkDatabase(stores, load(command).database);
      printDone(flags, { ok: true, bytes }, `OK, no damage found: ${bytes} bytes.`);
    }),
  );
}
