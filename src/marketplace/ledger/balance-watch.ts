import { type BalanceReading, remainingMinutes } from '../model/ledger-records.ts';
import type { BalanceWatch } from '../model/people.ts';

/** M: Events: "at about 12, 6, 3 hours, 1 hour, 30, 15 and 5 minutes". In minutes, the lowest first. */
export const lowBalanceMinutes = [5, 15, 30, 60, 180, 360, 720] as const;

const HIGHEST = 720;
/** A reading is "well above" a threshold from this multiple of it on. */
const WELL_ABOVE = 1.25;
/** An episode ends when readings have been well above every threshold for this long. */
const RECOVERED_AFTER_MS = 30 * 60_000;
/** The value of `pendingMinutes` after a reading showed that the balance is used up. */
const EXHAUSTED = 0;

const noVolumeNotice = { volumesDeleteAt: null, volumesNoticeMs: null } as const;

export const quietWatch: BalanceWatch = {
  mailedMinutes: null,
  pendingMinutes: null,
  recoveredSince: null,
  exhaustedAt: null,
  ...noVolumeNotice,
};

export type BalanceNews = { kind: 'low'; minutes: number } | { kind: 'exhausted' };

/**
 * A mail needs two consecutive readings. In one episode each threshold is mailed once, and none above a mailed one.
 * Fluctuating readings stay in the same episode.
 */
export function readBalance(
  watch: BalanceWatch,
  reading: BalanceReading,
): { watch: BalanceWatch; news: BalanceNews | null } {
  if (reading.balanceMicroUsd <= 0) return readExhausted(watch, reading);
  const remaining = remainingMinutes(reading);
  const passed = lowestPassed(remaining);
  const after = {
    ...recovered(watch, remaining, reading.at),
    exhaustedAt: null,
    pendingMinutes: passed,
    ...noVolumeNotice,
  };
  if (passed === null || watch.pendingMinutes === null) return { watch: after, news: null };
  const confirmed = Math.max(passed, watch.pendingMinutes);
  if (after.mailedMinutes !== null && confirmed >= after.mailedMinutes) return { watch: after, news: null };
  return { watch: { ...after, mailedMinutes: confirmed }, news: { kind: 'low', minutes: confirmed } };
}

/** Thresholds that the balance is now well above can be mailed again. */
export function readCredit(watch: BalanceWatch, reading: BalanceReading): BalanceWatch {
  if (reading.balanceMicroUsd <= 0) return watch;
  const remaining = remainingMinutes(reading);
  const under = lowBalanceMinutes.find((minutes) => remaining < WELL_ABOVE * minutes) ?? null;
  const { mailedMinutes } = watch;
  return {
    ...quietWatch,
    mailedMinutes: mailedMinutes === null || under === null ? null : Math.max(mailedMinutes, under),
  };
}

/**
 * When the watch may change next, at the rate of `reading`; infinite if never, and in the past if the next round must read again.The reading must treat all time as
 * confirmed. `slackMicroUsd` is the most by which the balance may be rounded up.
 */
export function nextReadingAt(
  watch: BalanceWatch,
  { at, balanceMicroUsd, burnMicroUsdPerHour }: BalanceReading,
  slackMicroUsd: number,
): number {
  if (watch.exhaustedAt !== null) return Number.POSITIVE_INFINITY;
  if (awaitsSecondReading(watch)) return at;
  const recoveredAt =
    watch.recoveredSince === null ? Number.POSITIVE_INFINITY : watch.recoveredSince + RECOVERED_AFTER_MS;
  const left = balanceMicroUsd - slackMicroUsd - (nextBoundary(watch) * burnMicroUsdPerHour) / 60;
  const passesAt =
    burnMicroUsdPerHour === 0
      ? Number.POSITIVE_INFINITY
      : at + Math.floor((left * 3_600_000) / burnMicroUsdPerHour) - 1;
  return Math.min(recoveredAt, passesAt);
}

/** Whether a second reading with the same result would be mailed. */
function awaitsSecondReading({ pendingMinutes, mailedMinutes }: BalanceWatch): boolean {
  if (pendingMinutes === null) return false;
  return pendingMinutes === EXHAUSTED || mailedMinutes === null || pendingMinutes < mailedMinutes;
}

/** The highest remaining time, in minutes, at which a falling balance changes the watch. */
function nextBoundary({ pendingMinutes, recoveredSince }: BalanceWatch): number {
  if (recoveredSince !== null) return WELL_ABOVE * HIGHEST;
  return lowBalanceMinutes.findLast((minutes) => pendingMinutes === null || minutes < pendingMinutes) ?? 0;
}

function readExhausted(
  watch: BalanceWatch,
  { at }: BalanceReading,
): { watch: BalanceWatch; news: BalanceNews | null } {
  const after = { ...watch, recoveredSince: null, pendingMinutes: EXHAUSTED };
  if (watch.exhaustedAt !== null || watch.pendingMinutes !== EXHAUSTED) return { watch: after, news: null };
  const mailedMinutes = lowBalanceMinutes[0];
  return { watch: { ...after, mailedMinutes, exhaustedAt: at }, news: { kind: 'exhausted' } };
}

function lowestPassed(remaining: number): number | null {
  return lowBalanceMinutes.find((minutes) => remaining <= minutes) ?? null;
}

function recovered(watch: BalanceWatch, remaining: number, at: number): BalanceWatch {
  if (remaining < WELL_ABOVE * HIGHEST) return { ...watch, recoveredSince: null };
  if (watch.mailedMinutes === null) return { ...watch, recoveredSince: null };
  const recoveredSince = watch.recoveredSince ?? at;
  if (at - recoveredSince < RECOVERED_AFTER_MS) return { ...watch, recoveredSince };
  return { ...watch, mailedMinutes: null, recoveredSince: null };
}
