import { z } from 'zod';

/** RFC 3339 UTC (O: conventions, 4). */
export const timestampSchema = z.iso.datetime().meta({ example: '2026-11-21T04:38:00.000Z' });

/** RFC 3339 in any zone, also in lower case, as others write it. The value is in upper case. */
export const anyTimestampSchema = z
  .string()
  .toUpperCase()
  .pipe(z.iso.datetime({ offset: true }));

/** A canonical region token (O: conventions, 5): stable, readable, never a datacenter code. */
export const regionTokenSchema = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "eu-frankfurt"')
  .max(63)
  .meta({ example: 'eu-frankfurt' });

/** A whole number in a query, in digits. */
export function wholeNumberSchema(most: number) {
  const expected = `expected a whole number from 1 to ${most}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: expected, abort: true })
    .transform(Number)
    .pipe(z.int(expected).min(1, expected).max(most, expected))
    .optional()
    .meta({ type: 'integer', minimum: 1, maximum: most });
}

/** USD per hour (O: conventions, 2). */
export const usdPerHourSchema = z.number().nonnegative().meta({ description: 'USD per hour.' });

const MICRO_USD_PER_USD = 1_000_000;

/** Converts micro-USD, in which Berth calculates, to the USD of the API. */
export function usdFromMicroUsd(microUsd: number): number {
  return microUsd / MICRO_USD_PER_USD;
}

/** Converts USD to micro-USD, rounded to the nearest. Berth stores no smaller unit. */
export function microUsdFromUsd(usd: number): number {
  return Math.round(usd * MICRO_USD_PER_USD);
}

const MICRO_PER_CENT = 10_000n;

/** Formats micro-USD as `$12.34`, with two to six decimals. Exact for every integer. Every price, rate and balance is shown so. */
export function toDollars(microUsd: number): string {
  const magnitude = BigInt(Math.abs(microUsd));
  const whole = magnitude / (100n * MICRO_PER_CENT);
  const decimals = String(magnitude % (100n * MICRO_PER_CENT))
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microUsd < 0 ? '-' : ''}$${whole}.${decimals}`;
}

/** {@link toDollars} for an amount in USD, as an API has it. */
export function usdToDollars(usd: number): string {
  return toDollars(microUsdFromUsd(usd));
}

/**
 * Reduces text of another party to one well-formed line of at most `maxLength` characters. Line breaks, control
 * characters and formatting characters, which could add a header or reverse the text, are removed.
 */
export function toOneLine(text: string, maxLength: number): string {
  // The slice is longer than the result can be. It bounds the work for a long text.
  const line = text
    .slice(0, 4 * maxLength)
    .toWellFormed()
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength - 1).join('')}…`;
}
