import { randomUUID } from 'node:crypto';
import { Client, type ClientConfig, type QueryConfig, type QueryResult } from 'pg';
import { assertBindable } from '../bindable.ts';

/** Time limit for closing a connection, in milliseconds. */
const GOODBYE_MS = 2_000;

/**
 * The server function that waits until a synchronous standby has a commit. It emits a warning if that wait was
 * cancelled.
 */
const WAIT_FOR_STANDBY = 'SyncRepWaitForLSN';

/** The wait for a synchronous standby was cancelled: the commit is only on this server's disk. */
class UnconfirmedCommit extends Error {
  override readonly name = 'UnconfirmedCommit';
  readonly code = 'UNCONFIRMED_COMMIT';
}

/**
 * A client with four changes: it closes in time even if the server does not answer; it can search for text with a NUL;
 * it sends the statements of one turn in one packet, since each packet wakes the server; and it treats the answer to a
 * commit that no synchronous standby has as lost.
 */
export class BerthClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config);
    this.on('notice', ({ routine, message }) => {
      if (routine !== WAIT_FOR_STANDBY) return;
      // The rest of the packet reports the commit as successful. It must not reach a query.
      this.connection.emit('error', new UnconfirmedCommit(message));
      this.connection.stream.destroy();
    });
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const limit = setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS);
    limit.unref();
    this.once('end', () => clearTimeout(limit));
    return callback === undefined ? super.end() : super.end(callback);
  }

  override query(query: string | QueryConfig): Promise<QueryResult>;
  override query(...args: never[]): never;
  override query(...args: unknown[]): unknown {
    const [query, values, ...rest] = args;
    const { stream } = this.connection;
    stream.cork();
    process.nextTick(() => stream.uncork());
    return Reflect.apply(super.query, this, [query, findable(query, values), ...rest]);
  }
}

/** The client for transactions. */
export class TransactionClient extends BerthClient {
  /** Why a statement of the transaction was not sent. The server knows nothing of it, so the commit must not be sent. */
  refused: unknown;

  override query(query: string | QueryConfig): Promise<QueryResult>;
  override query(...args: never[]): never;
  override query(...args: unknown[]): unknown {
    try {
      return Reflect.apply(super.query, this, args);
    } catch (error) {
      this.refused ??= error;
      throw error;
    }
  }
}

/**
 * PostgreSQL cannot store text with a NUL and refuses it as a parameter. A SELECT gets a random text instead, which
 * also matches nothing.
 * @throws {NotBindable} for a value that {@link assertBindable} refuses
 */
function findable(query: unknown, values: unknown): unknown {
  if (!Array.isArray(values)) return values;
  const text = typeof query === 'string' ? query : (query as { text?: unknown }).text;
  const isRead = typeof text === 'string' && /^\s*select/i.test(text);
  assertBindable(values, isRead);
  if (!isRead || !values.some(hasNul)) return values;
  return values.map((value) => (hasNul(value) ? randomUUID() : value));
}

const hasNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');
