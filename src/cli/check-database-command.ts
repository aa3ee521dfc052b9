import { Command } from 'commander';
import { checkDatabase, type Stores } from '../compose/stores.ts';
import { printLine } from '../runtime/print.ts';
import { withDatabase } from './database.ts';
import { type JsonFlag, printJson, withJson } from './print-records.ts';

/**
 * `berth check-database` and `berth marketplace check-database`: looks for damage in the file that a server may be
 * using meanwhile. Damage is an error that ends the command.
 */
export function checkDatabaseCommand(
  product: 'berth' | 'marketplace',
  stores: Pick<Stores<unknown>, 'format'>,
  load: (command: Command) => { database: string },
): Command {
  return withJson(withDatabase(new Command('check-database'), product)).action(
    ({ json }: JsonFlag, command: Command) => {
      const bytes = checkDatabase(stores, load(command).database);
      if (json) printJson({ ok: true, bytes });
      else printLine(`OK, no damage found: ${bytes} bytes.`);
    },
  );
}
