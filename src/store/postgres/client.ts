import { randomUUID } from 'node:crypto';
import { Client, type QueryResult } from 'pg';

/** How long, in milliseconds, a server is given to say goodbye. */
const GOODBYE_MS = 2_000;

/** A connection that closes in time also where nobody answers, and that asks for no text which cannot be. */
export class BerthClient extends Client {
  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const limit = setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS);
    limit.unref();
    this.once('end', () => clearTimeout(limit));
    return callback === undefined ? super.end() : super.end(callback);
  }

  override query(text: string): Promise<QueryResult>;
  override query(...args: never[]): never;
  override query(...args: unknown[]): unknown {
    const [query, values, ...rest] = args;
    return Reflect.apply(super.query, this, [query, findable(query, values), ...rest]);
  }
}

/**
 * PostgreSQL holds no text with a NUL and refuses to be asked for one: what is looked for is some text that it does
 * not hold either. What is written stays as it is, and is refused.
 */
function findable(query: unknown, values: unknown): unknown {
  if (!Array.isArray(values) || !values.some(hasNul)) return values;
  const text = typeof query === 'string' ? query : (query as { text?: unknown }).text;
  if (typeof text !== 'string' || !/^\s*select/i.test(text)) return values;
  return values.map((value) => (hasNul(value) ? randomUUID() : value));
}

const hasNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');
