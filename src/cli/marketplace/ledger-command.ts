import { Command } from 'commander';
import { counted } from '../../contract/counted.ts';
import { usdToDollars } from '../../contract/values.ts';
import { accountMeanings, sumAccounts } from '../../marketplace/operate/views/books.ts';
import { printLine } from '../../runtime/print.ts';
import { type Column, isData, type ListFlags, printRecords, withList } from '../print-records.ts';
import { onMarketplaceDatabase } from './database.ts';

interface Account {
  account: string;
  amount_usd: number;
  meaning: string;
}

const columns: readonly Column<Account>[] = [
  { head: 'ACCOUNT', key: 'account', value: ({ account }) => account },
  {
    head: 'AMOUNT',
    key: 'amount_usd',
    value: ({ amount_usd: usd }) => usd,
    text: ({ amount_usd: usd }) => usdToDollars(usd),
  },
  { head: 'MEANING', key: 'meaning', value: ({ meaning }) => meaning },
];

/** `berth marketplace ledger`: prints the sums of the books. `credit show` prints those of one team. */
export function ledgerCommand(): Command {
  const ledger = new Command('ledger');
  withList(
    onMarketplaceDatabase(ledger.command('ls', { isDefault: true }), async ({ store }, flags: ListFlags) => {
      const { teams, accounts } = await sumAccounts(store.read);
      const meanings: Readonly<Record<string, string>> = {
        ...accountMeanings,
        teams: `left to spend for ${counted(teams, 'team')}`,
      };
      const rows = accounts.map((one) => ({ ...one, meaning: meanings[one.account] ?? '' }));
      printRecords(rows, columns, flags);
      if (isData(flags)) return;
      printLine('');
      printLine(
        'The balance of teams is payments and grants minus usage. `berth marketplace verify-ledger` checks every entry.',
      );
    }),
  ).description('list the totals of the ledger: teams, payments, grants and revenue');
  return ledger;
}
