import { isPlainText } from '../ports/plain-text.ts';

/** A value that the caller must not give to the database: a bug. */
export class NotBindable extends TypeError {
  override readonly name = 'NotBindable';
}

/**
 * Asserts that each value is stored and compared as it is, on both databases. SQLite would accept infinity, and store NaN
 * as NULL; PostgreSQL refuses them. Neither returns a whole number beyond 2^53 or a lone surrogate as it was given, and
 * PostgreSQL refuses a NUL. A statement that only reads (`isRead`) may have any text: it finds nothing.
 * @throws {NotBindable}
 */
export function assertBindable(values: readonly unknown[], isRead: boolean): void {
  for (const value of values)
    if (typeof value === 'number') {
      if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
        throw new NotBindable(
          `the database was given the number ${value}: expected one between -(2^53 - 1) and 2^53 - 1`,
        );
    } else if (typeof value === 'string' && !isRead && !isPlainText(value))
      throw new NotBindable(
        'the database was given a text with a NUL or half of a surrogate pair: refuse it where it comes from, or store it in a `verbatim` column',
      );
}
