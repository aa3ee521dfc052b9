import { costUsd } from '../resources/budget.ts';
import { type Entry, isOpen } from '../resources/ledger.ts';

export const MS_PER_DAY = 86_400_000;

/** The start of the UTC day of a time. */
export function dayOf(at: number): number {
  return Math.floor(at / MS_PER_DAY) * MS_PER_DAY;
}

/** What resources cost on the UTC day of `day`, up to `now`. A resource costs from its create to its confirmed end. */
export function spentOn(day: number, entries: readonly Entry[], now: number): number {
  const [from, to] = [dayOf(day), dayOf(day) + MS_PER_DAY];
  return entries.reduce((sum, entry) => {
    const end = Math.min(entry.goneAt ?? now, to);
    const begin = Math.max(entry.intendedAt, from);
    return sum + (end <= begin ? 0 : costUsd({ ...entry, intendedAt: begin, goneAt: end }, now));
  }, 0);
}

/**
 * What may still be bought for now, in USD: the budget of the day without what was spent and what open resources may cost
 * until the day ends. Before midnight it is at most what open resources leave of the next day.
 */
export function leftUsd(budgetUsdPerDay: number, entries: readonly Entry[], now: number): number {
  const open = entries.filter(isOpen);
  const untilMidnight = dayOf(now) + MS_PER_DAY - now;
  const today = budgetUsdPerDay - spentOn(now, entries, now) - worst(open, untilMidnight);
  const tomorrow = budgetUsdPerDay - worst(open, MS_PER_DAY);
  return Math.max(0, Math.min(today, tomorrow));
}

function worst(open: readonly Entry[], forMs: number): number {
  return open.reduce((sum, { pricePerHour = 0 }) => sum + (pricePerHour * forMs) / 3_600_000, 0);
}
