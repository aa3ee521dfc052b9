import { toDollars } from '../../contract/values.ts';
import type { Deps } from '../deps.ts';
import { receiptMessage } from '../mail/messages.ts';
import { mailManagers } from '../mail/outbox.ts';
import type { LedgerAccount, LedgerTransactionRecord } from '../model/ledger-records.ts';
import { newId } from '../model/names.ts';
import { noSuchTeam, OperatorError } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import { readCredit } from './balance-watch.ts';
import { takeReading } from './watch-team.ts';

type CreditDeps = Pick<Deps, 'store' | 'clock' | 'random'>;

export interface Credit {
  teamId: string;
  amountMicroUsd: number;
  /** The payment's reference. The same reference is booked once. */
  reference?: string | null | undefined;
  /** The purpose of the booking. */
  reason?: string | undefined;
}

const kinds = {
  top_up: { words: 'Top-up', account: 'cash' },
  grant: { words: 'Grant', account: 'promotion' },
  adjustment: { words: 'Adjustment', account: 'revenue:compute' },
} as const satisfies Record<string, { words: string; account: LedgerAccount }>;
export type CreditKind = keyof typeof kinds;

const MAX_MICRO_USD = 1e15;

/** The booked transaction. `isReplay`: its reference had been booked before. */
export interface Booked {
  record: LedgerTransactionRecord;
  isReplay: boolean;
}

/** Books a payment and mails a receipt (M: Events). If the `reference` is already booked, returns that transaction. */
export async function topUp(
  deps: CreditDeps,
  credit: Credit & { reference: string },
): Promise<LedgerTransactionRecord> {
  return (await book(deps, 'top_up', credit)).record;
}

/** Books free credit. @throws {OperatorError} */
export async function grant(deps: CreditDeps, credit: Credit): Promise<LedgerTransactionRecord> {
  return (await book(deps, 'grant', credit)).record;
}

/** Corrects a balance, up or down. The ledger keeps the reason. @throws {OperatorError} */
export async function adjust(
  deps: CreditDeps,
  credit: Credit & { reason: string },
): Promise<LedgerTransactionRecord> {
  return (await book(deps, 'adjustment', credit)).record;
}

/** The store retries the second of two concurrent bookings with the same reference. @throws {OperatorError} */
export async function book(deps: CreditDeps, kind: CreditKind, credit: Credit): Promise<Booked> {
  assertAmount(kind, credit.amountMicroUsd);
  return deps.store.transact((tx) => bookOnce(deps, tx, kind, credit));
}

async function bookOnce(
  deps: CreditDeps,
  tx: Transaction,
  kind: CreditKind,
  { teamId, amountMicroUsd, reference = null, reason }: Credit,
): Promise<Booked> {
  const { words, account } = kinds[kind];
  const memo = `${words} of ${toDollars(amountMicroUsd)}${reason === undefined ? '' : `: ${reason}`}`;
  const known = reference === null ? null : await tx.ledger.byReference(reference);
  if (known !== null) {
    if (known.teamId === teamId && known.kind === kind && known.memo === memo)
      return { record: known, isReplay: true };
    throw new OperatorError(
      `The reference "${reference}" was already used for another booking: ${known.memo}.`,
    );
  }
  const team = await tx.teams.byId(teamId);
  if (team === null) throw noSuchTeam(teamId);
  const at = deps.clock.now();
  const record = { id: newId(deps.random, 'txn'), kind, teamId, at, memo, reference };
  await tx.ledger.book(record, [
    { account: `team:${teamId}`, amountMicroUsd },
    { account, amountMicroUsd: -amountMicroUsd },
  ]);
  const reading = await takeReading(tx, teamId, at);
  if (amountMicroUsd > 0) await tx.teams.update({ ...team, watch: readCredit(team.watch, reading) });
  if (kind === 'top_up')
    await mailManagers(deps, tx, team, {
      class: 'billing',
      kind: 'receipt',
      dedupeKey: `receipt:${record.id}`,
      ...receiptMessage({ team, amountMicroUsd, balanceMicroUsd: reading.balanceMicroUsd, at, reference }),
    });
  return { record, isReplay: false };
}

function assertAmount(kind: CreditKind, amountMicroUsd: number): void {
  const mayBeNegative = kind === 'adjustment';
  const isInRange = Number.isSafeInteger(amountMicroUsd) && Math.abs(amountMicroUsd) <= MAX_MICRO_USD;
  if (isInRange && (amountMicroUsd > 0 || (mayBeNegative && amountMicroUsd < 0))) return;
  throw new OperatorError(
    `${amountMicroUsd} micro-USD is not a valid amount: use a whole number ${mayBeNegative ? 'other than' : 'above'} zero.`,
  );
}
