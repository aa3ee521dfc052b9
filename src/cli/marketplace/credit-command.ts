import { Command } from 'commander';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import { realTimeBalance } from '../../marketplace/ledger/balance.ts';
import type { Credit } from '../../marketplace/ledger/credit.ts';
import type { LedgerTransactionRecord } from '../../marketplace/model/ledger-records.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import { type Booking, bookCredit } from '../../marketplace/operate/actions.ts';
import { printLine } from '../../runtime/print.ts';
import { localActor } from '../local-actor.ts';
import { parseUsd } from '../parse.ts';
import {
  type Column,
  type JsonFlag,
  printJson,
  printRecords,
  toFields,
  toJsonTime,
  withJson,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

const SHOWN = 50;

/** `berth marketplace credit`: every amount is booked, with who pays for it. */
export function creditCommand(): Command {
  const credit = new Command('credit');
  booking(credit.command('add <team> <usd>'), 'top_up')
    .description('book a payment; the same reference is booked once')
    .requiredOption('--reference <text>', 'of the payment')
    .option('--reason <text>', 'what it is for');
  booking(credit.command('grant <team> <usd>'), 'grant')
    .description('book credit that nobody paid for')
    .option('--reference <text>', 'with which it is booked once')
    .option('--reason <text>', 'what it is for');
  booking(credit.command('adjust <team> <usd>'), 'adjustment')
    .description('correct a balance: `-- -5` takes five dollars')
    .requiredOption('--reason <text>', 'why; it stays in the books')
    .option('--reference <text>', 'with which it is booked once');
  withJson(onMarketplaceDatabase(credit.command('show <team>'), printBooks)).description(
    'show what a team has left, and what was booked',
  );
  return credit;
}

/** commander has seen to the flags that each kind needs. */
function booking(command: Command, kind: Booking['kind']): Command {
  return onMarketplaceDatabase(
    command,
    async (
      deps,
      idOrSlug: string,
      usd: string,
      { reference, reason }: Pick<Credit, 'reference' | 'reason'>,
    ) => {
      const amountMicroUsd = parseUsd('The amount', usd);
      const { id: teamId } = await findTeam(deps.store.read.teams, idOrSlug);
      const booking = { kind, teamId, amountMicroUsd, reference, reason } as Booking;
      const booked = await bookCredit(deps, localActor(), booking);
      const balance = await realTimeBalance(deps.store.read, teamId, deps.clock.now());
      printLine(`${booked.memo} (${booked.id}): ${teamId} has ${toDollars(balance)} left to spend.`);
    },
  );
}

const transactionColumns: readonly Column<LedgerTransactionRecord>[] = [
  { head: 'TRANSACTION', key: 'id', value: ({ id }) => id },
  { head: 'KIND', key: 'kind', value: ({ kind }) => kind },
  { head: 'AT', key: 'at', value: ({ at }) => toJsonTime(at) },
  { head: 'MEMO', key: 'memo', value: ({ memo }) => memo },
  { head: 'REFERENCE', key: 'reference', value: ({ reference }) => reference, none: '' },
];

async function printBooks({ store, clock }: CommandDeps, idOrSlug: string, flags: JsonFlag): Promise<void> {
  const { id, name } = await findTeam(store.read.teams, idOrSlug);
  const balance = await realTimeBalance(store.read, id, clock.now());
  const booked = await store.read.ledger.transactionsOf(id, SHOWN);
  if (flags.json) {
    const transactions = booked.map((record) => toFields(record, transactionColumns));
    printJson({ team_id: id, name, balance_usd: usdFromMicroUsd(balance), transactions });
    return;
  }
  printLine(`${name} (${id}) has ${toDollars(balance)} left to spend.\n`);
  printRecords(booked, transactionColumns, flags);
}
