import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ChangePosition } from '../model/store.ts';

const FORMAT = 1;
/**
 * The age at which a cursor expires. Tombstones are kept for at least two days, so rows changed after a younger cursor
 * still exist.
 */
const KEPT_MS = 24 * 60 * 60 * 1000;
const MAX_LENGTH = 8_192;

/** The account and the database that a cursor belongs to. */
export interface CursorScope {
  accountId: string;
  /** The epoch of the database. */
  epoch: string;
  /** In milliseconds since the epoch. */
  now: number;
}

const whole = z.int().nonnegative();
/** The scope's digest, the creation time, and the position. `open` contains distances from `from`, which are short. */
const partsSchema = z.tuple([
  z.literal(FORMAT),
  z.string(),
  whole,
  whole,
  z.string().max(255),
  z.array(z.int().positive()),
]);
const anyFormatSchema = z.tuple([z.int().positive()], z.unknown());

export function toCursor(scope: CursorScope, { from, afterId, open }: ChangePosition): string {
  const distances = open.map((number) => from - number);
  const parts: z.infer<typeof partsSchema> = [FORMAT, digestOf(scope), scope.now, from, afterId, distances];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** A parsed cursor, before its scope is checked. */
export interface ReadCursor {
  /** Null if another version of Berth made the cursor. */
  position: ChangePosition | null;
  isOf(scope: CursorScope): boolean;
}

/** Parses a cursor. Undefined if the text is not one. */
export function fromCursor(text: string): ReadCursor | undefined {
  const value = parse(text);
  const parts = partsSchema.safeParse(value);
  if (!parts.success) {
    const [format] = anyFormatSchema.safeParse(value).data ?? [FORMAT];
    return format === FORMAT ? undefined : { position: null, isOf: () => false };
  }
  const [, digest, madeAt, from, afterId, distances] = parts.data;
  return {
    position: { from, afterId, open: distances.map((distance) => from - distance) },
    isOf: (scope) => digest === digestOf(scope) && scope.now - madeAt < KEPT_MS,
  };
}

function parse(text: string): unknown {
  if (text.length > MAX_LENGTH || !/^[\w-]+$/.test(text)) return undefined;
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** A digest of the account and the epoch together, so a cursor of another account counts as one of another epoch. */
function digestOf({ accountId, epoch }: CursorScope): string {
  return createHash('sha256')
    .update(JSON.stringify([epoch, accountId]))
    .digest('base64url')
    .slice(0, 16);
}
