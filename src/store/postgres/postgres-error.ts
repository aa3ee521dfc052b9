import { DrizzleQueryError } from 'drizzle-orm/errors';
import { DatabaseError } from 'pg';
import { StoreUnavailable } from '../../ports/store-unavailable.ts';

/** The classes of SQLSTATE whose messages speak of connections, locks and privileges, and never of values. */
const SPEAKS_OF_NO_VALUES = /^(08|25|28|3D|40|42501|53|55|57|58)/;
const INTEGRITY = /^23/;
const DUPLICATE = '23505';
const LOST_RACE = /^(40001|40P01)$/;
const LOST_CONNECTION = /^(08|57P0)/;

/** What PostgreSQL or the way to it said, without what the statement carried: its values may be secrets. */
export class PostgresFailure extends Error {
  override readonly name = 'PostgresFailure';
  /** The SQLSTATE, or the name that the operating system has for it. */
  readonly code: string;
  /** Whether the connection is gone, and with it the answer to what was under way. */
  readonly isConnectionLost: boolean;

  constructor(error: Error) {
    const { code = '' } = error as { code?: string };
    const isAnswer = error instanceof DatabaseError;
    super(isAnswer && !SPEAKS_OF_NO_VALUES.test(code) ? describeRefused(error) : error.message);
    this.code = code;
    this.isConnectionLost =
      !isAnswer || LOST_CONNECTION.test(code) || /^(FATAL|PANIC)$/.test(error.severity ?? '');
  }

  /** Whether another transaction was first, so that the same one may succeed now. */
  get isLostRace(): boolean {
    return LOST_RACE.test(this.code) || this.isDuplicate;
  }

  get isDuplicate(): boolean {
    return this.code === DUPLICATE;
  }
}

function describeRefused({ code, table, constraint }: DatabaseError): string {
  const what = constraint ?? table;
  return `PostgreSQL refuses a statement with ${code}${what === undefined ? '' : ` (${what})`}`;
}

/** Undefined: the error is not the database's. */
export function toFailure(error: unknown): PostgresFailure | undefined {
  if (error instanceof PostgresFailure) return error;
  if (error instanceof DatabaseError) return new PostgresFailure(error);
  if (error instanceof DrizzleQueryError && error.cause instanceof Error)
    return new PostgresFailure(error.cause);
  return undefined;
}

/**
 * The core knows one storage failure; what PostgreSQL said is its cause, for the log. A broken constraint is a fault
 * of the program and stays itself.
 */
export function fromPostgres(error: unknown): unknown {
  const failure = toFailure(error);
  if (failure === undefined || INTEGRITY.test(failure.code)) return failure ?? error;
  return unavailable(failure);
}

function unavailable(failure: PostgresFailure): StoreUnavailable {
  return new StoreUnavailable(`${failure.code || 'connection'}: ${failure.message}`, { cause: failure });
}

/** What the driver threw outside of a query of the core: always the database's. */
export async function asFailure<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) =>
    Promise.reject(
      toFailure(error) ?? new PostgresFailure(error instanceof Error ? error : new Error(String(error))),
    ),
  );
}
