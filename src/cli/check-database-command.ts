import { Command } from 'commander';
import { checkDatabase } from '../compose/open-store.ts';
import { printLine } from '../runtime/print.ts';
import { type DatabaseFlags, loadFor, withDatabase } from './database.ts';
import { type JsonFlag, printJson, withJson } from './print-records.ts';

/** `berth check-database`: looks for damage in the file that `berth serve` may be using meanwhile. */
export function checkDatabaseCommand(): Command {
  return withJson(withDatabase(new Command('check-database'))).action(
    ({ json, ...flags }: DatabaseFlags & JsonFlag) =>
      printSound(checkDatabase(loadFor(flags).database), json),
  );
}

/** Damage is an error that ends the command. */
export function printSound(bytes: number, json: JsonFlag['json']): void {
  if (json) printJson({ ok: true, bytes });
  else printLine(`OK, no damage found: ${bytes} bytes.`);
}
