import { Command } from 'commander';
import { counted } from '../../contract/counted.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import { printLine } from '../../runtime/print.ts';
import { type Column, isData, type ListFlags, printRecords, withList } from '../print-records.ts';
import { onMarketplaceDatabase } from './database.ts';

interface Account {
  name: string;
  amountMicroUsd: number;
  meaning: string;
}

const meanings: Readonly<Record<string, string>> = {
  cash: 'payments by teams',
  promotion: 'grants to teams',
  'revenue:compute': 'revenue from deployments',
  'revenue:storage': 'revenue from volumes',
};

const columns: readonly Column<Account>[] = [
  { head: 'ACCOUNT', key: 'account', value: ({ name }) => name },
  {
    head: 'AMOUNT',
    key: 'amount_usd',
    value: ({ amountMicroUsd }) => usdFromMicroUsd(amountMicroUsd),
    text: ({ amountMicroUsd }) => toDollars(amountMicroUsd),
  },
  { head: 'MEANING', key: 'meaning', value: ({ meaning }) => meaning },
];

/** `berth marketplace ledger`: the sums of the books. `credit show` has those of one team. */
export function ledgerCommand(): Command {
  const ledger = new Command('ledger');
  withList(
    onMarketplaceDatabase(ledger.command('ls', { isDefault: true }), async ({ store }, flags: ListFlags) => {
      const balances = await store.read.ledger.balances();
      const ofTeams = balances.filter(({ account }) => account.startsWith('team:'));
      const house = balances.filter(({ account }) => !account.startsWith('team:'));
      const accounts: Account[] = [
        {
          name: 'teams',
          amountMicroUsd: ofTeams.reduce((sum, { amountMicroUsd }) => sum + amountMicroUsd, 0),
          meaning: `left to spend for ${counted(ofTeams.length, 'team')}`,
        },
        ...house.map(({ account, amountMicroUsd }) => ({
          name: account,
          amountMicroUsd,
          meaning: meanings[account] ?? '',
        })),
      ];
      printRecords(accounts, columns, flags);
      if (!isData(flags)) {
        printLine('');
        printLine(
          'The balance of teams is payments and grants minus usage. `berth marketplace verify-ledger` checks every entry.',
        );
      }
    }),
  ).description('list the totals of the ledger: teams, payments, grants and revenue');
  return ledger;
}
