import { Command } from 'commander';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { toDollars } from '../../marketplace/contract/values.ts';
import { realTimeBalance } from '../../marketplace/ledger/balance.ts';
import type { Credit } from '../../marketplace/ledger/credit.ts';
import type { LedgerTransactionRecord } from '../../marketplace/model/ledger-records.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import { type Booking, bookCredit } from '../../marketplace/operate/actions.ts';
import { auditedLookup } from '../../operators/audit.ts';
import { printLine } from '../../runtime/print.ts';
import { localActor } from '../local-actor.ts';
import { parseUsd } from '../parse.ts';
import {
  type Column,
  isData,
  type OutputFlag,
  printData,
  printDone,
  printRecords,
  toFields,
  toJsonTime,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

const SHOWN = 50;

/** `berth marketplace credit`: books each amount with its payer. */
export function creditCommand(): Command {
  const credit = new Command('credit');
  booking(credit.command('top-up <team> <usd>'), 'top_up')
    .description('record a payment; the same reference is recorded once')
    .requiredOption('--reference <text>', 'of the payment')
    .option('--reason <text>', 'what it is for');
  booking(credit.command('grant <team> <usd>'), 'grant')
    .description('grant unpaid credit')
    .option('--reference <text>', 'the same reference is recorded once')
    .option('--reason <text>', 'what it is for');
  booking(credit.command('adjust <team> <usd>'), 'adjustment')
    .description('correct a balance: `-- -5` subtracts five dollars')
    .requiredOption('--reason <text>', 'why; kept in the ledger')
    .option('--reference <text>', 'the same reference is recorded once');
  withOutput(onMarketplaceDatabase(credit.command('show <team>'), printBooks)).description(
    'show the balance of a team and its ledger entries',
  );
  return credit;
}

/** commander has checked the flags that each kind requires. */
function booking(command: Command, kind: Booking['kind']): Command {
  const made = onMarketplaceDatabase(
    command,
    async (deps, idOrSlug: string, usd: string, flags: OutputFlag & Pick<Credit, 'reference' | 'reason'>) => {
      const { reference, reason } = flags;
      const amountMicroUsd = parseUsd('The amount', usd);
      const action = { action: `credit.${kind}`, subject: idOrSlug };
      const { id: teamId } = await auditedLookup(deps, localActor(), action, () =>
        findTeam(deps.store.read.teams, idOrSlug),
      );
      const booking = { kind, teamId, amountMicroUsd, reference, reason } as Booking;
      const booked = await bookCredit(deps, localActor(), booking);
      const balance = await realTimeBalance(deps.store.read, teamId, deps.clock.now());
      const { id, memo } = booked;
      const sentence = `${memo} (${id}): ${teamId} has ${toDollars(balance)} left to spend.`;
      printDone(flags, { id, memo, team_id: teamId, balance_usd: usdFromMicroUsd(balance) }, sentence);
    },
  );
  return withOutput(made);
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
