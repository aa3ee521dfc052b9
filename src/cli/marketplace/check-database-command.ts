import { Command } from 'commander';
import { checkMarketplaceDatabase } from '../../compose/open-marketplace-store.ts';
import { printSound } from '../check-database-command.ts';
import { type JsonFlag, withJson } from '../print-records.ts';
import { loadMarketplaceFor, withMarketplaceDatabase } from './database.ts';

/** `berth marketplace check-database`: looks for damage in the file that `berth marketplace` may be using meanwhile. */
export function checkMarketplaceDatabaseCommand(): Command {
  return withJson(withMarketplaceDatabase(new Command('check-database'))).action(
    ({ json }: JsonFlag, command: Command) =>
      printSound(checkMarketplaceDatabase(loadMarketplaceFor(command).database), json),
  );
}
