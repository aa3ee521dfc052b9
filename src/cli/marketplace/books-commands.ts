import { Command } from 'commander';
import { marketplaceStores } from '../../compose/stores/marketplace.ts';
import { checkDatabase } from '../../compose/stores/stores.ts';
import { isPostgres } from '../../config/server-schema.ts';
import { counted } from '../../contract/counted.ts';
import { verifyLedger } from '../../marketplace/ledger/verify-ledger.ts';
import { accountMeanings, keepVerdict, sumAccounts } from '../../marketplace/operate/views/books.ts';
import { printLine } from '../../runtime/print.ts';
import { backupCommand } from '../backup-command.ts';
import { checkDatabaseCommand } from '../check-database-command.ts';
import {
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printRows,
  withList,
  withOutput,
} from '../print-records.ts';
import { upgradeCommand } from '../upgrade-command.ts';
import { loadMarketplaceFor, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace ledger`: prints the sums of the books. `credit show` prints those of one team. */
export function ledgerCommand(): Command {
  const ledger = new Command('ledger');
  withList(
    onMarketplaceDatabase(ledger.command('ls', { isDefault: true }), async ({ store }, flags: ListFlags) => {
      const { teams, accounts } = await sumAccounts(store.read);
      const meanings = { ...accountMeanings, teams: `left to spend for ${counted(teams, 'team')}` };
      printRows(
        accounts.map((one) => ({ ...one, meaning: meanings[one.account as 'teams'] ?? '' })),
        flags,
      );
    }),
  ).description('list the totals of the ledger: teams, payments, grants and revenue');
  return ledger;
}

/** `berth marketplace verify-ledger`: exits 1 if the books are wrong. */
export function verifyLedgerCommand(): Command {
  return withOutput(
    onMarketplaceDatabase(new Command('verify-ledger'), async (deps, flags: OutputFlag) => {
      const { store, clock, config } = deps;
      // Sums are only as reliable as the file that they are read from.
      if (!isPostgres(config.database)) checkDatabase(marketplaceStores, config.database);
      const { findings, counts } = await verifyLedger(store, clock.now());
      // Stores the verdict if possible. The check itself only reads.
      await keepVerdict(store, { findings, counts }, clock.now()).catch(() => undefined);
      if (findings.length > 0) process.exitCode = 1;
      if (isData(flags)) return printData(flags, { findings, counts });
      for (const { id, problem } of findings) printLine(`${id}: ${problem}`);
      const { teams, segments, slices, subjects } = counts;
      printLine(
        `${findings.length === 0 ? 'The ledger is consistent' : counted(findings.length, 'finding')}: ${counted(teams, 'team')}, ${subjects} deployments and volumes, ${counted(segments, 'segment')}, ${counted(slices, 'slice')}.`,
      );
    }),
  );
}

/** `berth marketplace check-database` */
export function checkMarketplaceCommand(): Command {
  return checkDatabaseCommand('marketplace', marketplaceStores, loadMarketplaceFor);
}

/** `berth marketplace backup` */
export function backupMarketplaceCommand(): Command {
  return backupCommand('marketplace', marketplaceStores, loadMarketplaceFor);
}

/** `berth marketplace upgrade` */
export function upgradeMarketplaceCommand(): Command {
  return upgradeCommand('marketplace', marketplaceStores, loadMarketplaceFor);
}
