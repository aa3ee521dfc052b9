import { anyTimestampSchema } from '../contract/values.ts';
import { Fatal } from '../ports/errors.ts';
import type { InputKind } from './operation.ts';

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Parses a duration such as 30m, 2h or 7d. Returns undefined for any other text. */
function parseDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,7})([mhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

const TIME = 'a time that exists, with its zone, such as 2030-01-31T00:00:00Z';
/** The latest time that RFC 3339 can express. */
const LAST_MS = Date.UTC(10_000) - 1;

/** Parses a time, given as a duration from now ("30m", "2h", "7d") or in RFC 3339. @throws {Fatal} */
export function parseTime(what: string, text: string, now: number): number {
  const forMs = parseDuration(text);
  const at = forMs === undefined ? fromTimestamp(text) : now + forMs;
  if (at <= LAST_MS) return at;
  throw new Fatal(`${what} ${text}: give minutes, hours or days such as 30m, 2h or 7d, or ${TIME}.`);
}

/** Parses a time in RFC 3339. @throws {Fatal} */
export function parseTimestamp(what: string, text: string): number {
  const at = fromTimestamp(text);
  if (at <= LAST_MS) return at;
  throw new Fatal(`${what} ${text}: give ${TIME}.`);
}

/** NaN if the text is not RFC 3339. `Date.parse` alone accepts days that do not exist, and times without a zone. */
function fromTimestamp(text: string): number {
  return Date.parse(anyTimestampSchema.safeParse(text).data ?? '');
}

/** Like {@link parseTime}, for a time in the future. @throws {Fatal} */
export function parseTimeToCome(what: string, text: string, now: number): number {
  const at = parseTime(what, text, now);
  if (at > now) return at;
  throw new Fatal(
    `${what} ${text}: that is in the past; give a future time, such as 30m, 2h or 7d from now.`,
  );
}

const DOLLARS = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/;

/** Parses a duration of at most a day to seconds. @throws {Fatal} */
export function parseSeconds(what: string, text: string): number {
  const ms = parseDuration(text) ?? 0;
  if (ms === 0 || ms > UNIT_MS.d)
    throw new Fatal(`${what} ${text}: give minutes or hours, such as 30m or 2h, and at most 24h.`);
  return ms / 1000;
}

/** Parses US dollars with at most six decimals exactly, as micro-USD. @throws {Fatal} */
function parseUsd(what: string, text: string): number {
  const [, sign, whole = '', fraction = ''] = DOLLARS.exec(text) ?? [];
  if (sign === undefined)
    throw new Fatal(
      `${what} ${text}: give an amount in US dollars with at most six decimals, such as 25.50.`,
    );
  const microUsd = Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'));
  return sign === '-' ? 0 - microUsd : microUsd;
}

/** @throws {Fatal} */
export function parseCount(what: string, text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new Fatal(`${what} ${text}: give a whole number of at most nine digits.`);
  return Number(text);
}

/** Parses the maximum length of a list. @throws {Fatal} */
export function parseLimit(what: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Fatal(`${what} ${text}: give a whole number from 1.`);
  return Number(text);
}

/** @throws {Fatal} */
function parseMinutes(what: string, text: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(text)) throw new Fatal(`${what} ${text}: give a number of minutes.`);
  return Number(text);
}

/**
 * The value of a flag or of a form's field. A time may be a duration from now.
 * @throws {Fatal}
 */
export function readText(kind: InputKind, what: string, text: string, now: number): unknown {
  switch (kind) {
    case 'usd':
      return parseUsd(what, text) / 1_000_000;
    case 'count':
      return parseCount(what, text);
    case 'minutes':
      return parseMinutes(what, text);
    case 'time':
      return new Date(parseTime(what, text, now)).toISOString();
    default:
      return text;
  }
}
