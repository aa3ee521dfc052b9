import { Command } from 'commander';
import { toDollars, usdFromMicroUsd } from '../../contract/values.ts';
import { realTimeBalance } from '../../marketplace/ledger/balance.ts';
import type { LedgerTransactionRecord } from '../../marketplace/model/ledger-records.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  isData,
  type OutputFlag,
  printData,
  printRecords,
  toFields,
  toJsonTime,
  withOutput,
} from '../print-records.ts';
import { withMarketplaceActions } from './action-commands.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

const SHOWN = 50;

/** `berth marketplace credit`: books each amount with its payer. */
export function creditCommand(): Command {
  const credit = withMarketplaceActions(new Command('credit'));
  withOutput(onMarketplaceDatabase(credit.command('show <team>'), printBooks)).description(
    'show the balance of a team and its ledger entries',
  );
  return credit;
}

const transactionColumns: readonly Column<LedgerTransactionRecord>[] = [
  { head: 'TRANSACTION', key: 'id', value: ({ id }) => id },
  { head: 'KIND', key: 'kind', value: ({ kind }) => kind },
  { head: 'AT', key: 'at', value: ({ at }) => toJsonTime(at) },
  { head: 'MEMO', key: 'memo', value: ({ memo }) => memo },
  { head: 'REFERENCE', key: 'reference', value: ({ reference }) => reference, none: '' },
];

async function printBooks({ store, clock }: CommandDeps, idOrSlug: string, flags: OutputFlag): Promise<void> {
  const { id, name } = await findTeam(store.read.teams, idOrSlug);
  const balance = await realTimeBalance(store.read, id, clock.now());
  const booked = await store.read.ledger.transactionsOf(id, SHOWN);
  if (isData(flags)) {
    const transactions = booked.map((record) => toFields(record, transactionColumns));
    printData(flags, { team_id: id, name, balance_usd: usdFromMicroUsd(balance), transactions });
    return;
  }
  printLine(`${name} (${id}) has ${toDollars(balance)} left to spend.`);
  printLine('');
  printRecords(booked, transactionColumns, flags);
}
