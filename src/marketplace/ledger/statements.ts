import { DAY_MS } from '../../ports/clock.ts';
import type { LedgerReader, Period, UsageSum } from '../model/ledger-store.ts';

/** The month of a text such as `2026-11`, in UTC. */
export function periodOf(month: string): Period {
  const [year = 0, number = 1] = month.split('-').map(Number);
  return { from: Date.UTC(year, number - 1), to: Date.UTC(year, number) };
}

/** Such as `2026-11`. A time at a month's first midnight belongs to the month before. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7);
}

/** Revenue, and what teams owed at the end of the day, of each UTC day with a booking or a debt. */
export interface RevenueDay {
  day: number;
  computeMicroUsd: number;
  storageMicroUsd: number;
  badDebtMicroUsd: number;
}

/** The days of a period up to `now`. */
export async function revenueByDay(
  ledger: LedgerReader,
  { from, to }: Period,
  now: number,
): Promise<RevenueDay[]> {
  const balances = new Map((await ledger.balancesAt(from)).map((sum) => [sum.account, sum.amountMicroUsd]));
  const entries = Map.groupBy(await ledger.entriesByDay({ from, to }), ({ day }) => day);
  const days: RevenueDay[] = [];
  for (let day = from; day < Math.min(to, now); day += DAY_MS) {
    const revenue = { 'revenue:compute': 0, 'revenue:storage': 0 };
    for (const { account, isUsage, amountMicroUsd } of entries.get(day) ?? []) {
      balances.set(account, (balances.get(account) ?? 0) + amountMicroUsd);
      if (isUsage && account in revenue) revenue[account as keyof typeof revenue] += amountMicroUsd;
    }
    let badDebtMicroUsd = 0;
    for (const [account, balance] of balances)
      if (account.startsWith('team:') && balance < 0) badDebtMicroUsd -= balance;
    const computeMicroUsd = revenue['revenue:compute'];
    days.push({ day, computeMicroUsd, storageMicroUsd: revenue['revenue:storage'], badDebtMicroUsd });
  }
  return days;
}

/** The sums of each provider and kind, over all teams. */
export function sumByProvider(sums: readonly UsageSum[]): Omit<UsageSum, 'teamId'>[] {
  const totals = new Map<string, Omit<UsageSum, 'teamId'>>();
  for (const { teamId: _, ...one } of sums) {
    const name = `${one.providerId} ${one.subjectKind}`;
    const total = totals.get(name);
    totals.set(
      name,
      total === undefined
        ? one
        : {
            ...one,
            ms: total.ms + one.ms,
            amountMicroUsd: total.amountMicroUsd + one.amountMicroUsd,
            providerMicroUsd: total.providerMicroUsd + one.providerMicroUsd,
            unpricedMs: total.unpricedMs + one.unpricedMs,
          },
    );
  }
  return [...totals.values()];
}

/**
 * Compares what the statements of each month sum up, from segments and slices, with the entries of the ledger: for each
 * team, and for each kind of revenue. Returns what differs.
 */
export async function statementProblems(
  ledger: LedgerReader,
  now: number,
): Promise<{ id: string; problem: string }[]> {
  const first = await ledger.firstUsageAt();
  const problems: { id: string; problem: string }[] = [];
  if (first === null) return problems;
  for (let at = first - 1; at < now; at = periodOf(monthOf(at)).to) {
    const month = monthOf(at);
    const stated = new Map<string, number>();
    const booked = new Map<string, number>();
    const add = (sums: Map<string, number>, name: string, amount: number) =>
      sums.set(name, (sums.get(name) ?? 0) + amount);
    for (const { teamId, subjectKind, amountMicroUsd } of await ledger.usageSums(periodOf(month))) {
      add(stated, `team:${teamId}`, -amountMicroUsd);
      add(stated, subjectKind === 'deployment' ? 'revenue:compute' : 'revenue:storage', amountMicroUsd);
    }
    for (const { account, isUsage, amountMicroUsd } of await ledger.entriesByDay(periodOf(month)))
      if (isUsage) add(booked, account, amountMicroUsd);
    for (const account of new Set([...stated.keys(), ...booked.keys()])) {
      const [states, books] = [stated.get(account) ?? 0, booked.get(account) ?? 0];
      if (states !== books)
        problems.push({
          id: account,
          problem: `its statement of ${month} has usage of ${states}, its entries add up to ${books}`,
        });
    }
  }
  return problems;
}
