import { z } from 'zod';

/** RFC 3339 UTC (O: conventions, 4). */
export const timestampSchema = z.iso.datetime().meta({ example: '2026-11-21T04:38:00.000Z' });

/** A canonical region token (O: conventions, 5): stable, readable, never a datacenter code. */
export const regionTokenSchema = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "eu-frankfurt"')
  .max(63)
  .meta({ example: 'eu-frankfurt' });

/** USD per hour (O: conventions, 2). */
export const usdPerHourSchema = z.number().nonnegative().meta({ description: 'USD per hour.' });

const MICRO_USD_PER_USD = 1_000_000;

/** Money is integer micro-USD inside and a JSON number at the edge. */
export function usdFromMicroUsd(microUsd: number): number {
  return microUsd / MICRO_USD_PER_USD;
}

/** Rounds to the nearest micro-USD, the smallest unit that Berth keeps. */
export function microUsdFromUsd(usd: number): number {
  return Math.round(usd * MICRO_USD_PER_USD);
}

/**
 * What somebody else wrote, as one line of at most `maxLength` characters: well-formed, without a line break, a control
 * or a formatting character that could make another header, another line or another direction of it.
 */
export function toOneLine(text: string, maxLength: number): string {
  // What follows is more than is kept, so a long text is not searched as a whole.
  const line = text
    .slice(0, 4 * maxLength)
    .toWellFormed()
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength - 1).join('')}…`;
}
