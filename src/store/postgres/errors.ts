import { DrizzleQueryError } from 'drizzle-orm/errors';
import { DatabaseError } from 'pg';
import { StoreUnavailable } from '../../ports/errors.ts';
import { DatabaseRefused } from '../database-refused.ts';

/** SQLSTATE classes whose messages name connections, locks and privileges, never values. */
const SPEAKS_OF_NO_VALUES = /^(08|25|28|3D|40|42501|53|55|57|58)/;
/**
 * SQLSTATEs whose cause is the statement or its values: the server would refuse it in any state. A missing table, column or
 * privilege and a pooler's prepared statements (42501, 42703, 42P01, 42P05) are matters of the server's operator.
 */
const BUG = /^(0A|2[0-4]|42(?!501|703|P01|P05)|44|54|P0)/;
const DUPLICATE = '23505';
/** The longest text of a statement in a message. */
const MAX_STATEMENT = 200;
const LOST_RACE = /^(40001|40P01)$/;
const LOST_CONNECTION = /^(08|57P0)/;

/** An error of PostgreSQL or of the connection, without the statement's values, which may be secrets. */
export class PostgresFailure extends Error {
  override readonly name = 'PostgresFailure';
  /** The SQLSTATE, or the operating system's error code. */
  readonly code: string;
  /** Whether the connection, and so the answer to the running statement, is lost. */
  readonly isConnectionLost: boolean;

  /** @param statement its text, without its values */
  constructor(error: Error, statement?: string) {
    const { code = '' } = error as { code?: string };
    const isAnswer = error instanceof DatabaseError;
    super(isAnswer && !SPEAKS_OF_NO_VALUES.test(code) ? describeRefused(error, statement) : error.message);
    this.code = code;
    this.isConnectionLost =
      !isAnswer || LOST_CONNECTION.test(code) || /^(FATAL|PANIC)$/.test(error.severity ?? '');
  }

  /** Whether a concurrent transaction won, so that a retry may succeed. */
  get isLostRace(): boolean {
    return LOST_RACE.test(this.code) || this.isDuplicate;
  }

  get isDuplicate(): boolean {
    return this.code === DUPLICATE;
  }

  /** Whether the server works, and the statement or a value is wrong. */
  get isBug(): boolean {
    return BUG.test(this.code);
  }
}

function describeRefused({ code, table, constraint }: DatabaseError, statement: string | undefined): string {
  const what = constraint ?? table ?? statement?.slice(0, MAX_STATEMENT);
  return `PostgreSQL refuses a statement with ${code}${what === undefined ? '' : ` (${what})`}`;
}

/** Returns undefined if the error does not come from the database. */
export function toFailure(error: unknown): PostgresFailure | undefined {
  if (error instanceof PostgresFailure) return error;
  if (error instanceof DatabaseError) return new PostgresFailure(error);
  if (error instanceof DrizzleQueryError && error.cause instanceof Error && !isOfValues(error.cause))
    return new PostgresFailure(error.cause, error.query);
  return undefined;
}

/** Whether a value could not be encoded: nothing was sent. */
function isOfValues(error: unknown): boolean {
  return error instanceof TypeError;
}

/**
 * Translates an error of PostgreSQL into `StoreUnavailable`, with the original as its cause for the log. If a statement or
 * a value is wrong, such as one that violates a constraint, that is a bug and stays a `PostgresFailure`.
 */
export function fromPostgres(error: unknown): unknown {
  const failure = toFailure(error);
  if (failure !== undefined) return failure.isBug ? failure : unavailable(failure);
  // drizzle's own message contains the statement's values.
  return error instanceof DrizzleQueryError ? error.cause : error;
}

function unavailable(failure: PostgresFailure): StoreUnavailable {
  return new StoreUnavailable(`${failure.code || 'connection'}: ${failure.message}`, { cause: failure });
}

/** Converts every error of a direct driver call to a `PostgresFailure`. */
export async function asFailure<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) =>
    Promise.reject(
      toFailure(error) ?? new PostgresFailure(error instanceof Error ? error : new Error(String(error))),
    ),
  );
}

/**
 * Converts an error while opening a database into a `DatabaseRefused`, if the database is the cause and not the
 * program.
 */
export function refusalOf(error: unknown, url: string): Error {
  if (error instanceof DatabaseRefused) return error;
  const failure = toFailure(error);
  if (failure === undefined) return error instanceof Error ? error : new Error(String(error));
  const sentence = sentenceFor(failure, toAddress(url));
  return sentence === undefined ? failure : new DatabaseRefused(sentence, { cause: failure });
}

function sentenceFor(
  { code, message, isConnectionLost }: PostgresFailure,
  address: string,
): string | undefined {
  const known = sentences.find(([pattern]) => pattern.test(code === '' ? message : code));
  if (known !== undefined) return known[1](address, message);
  if (isConnectionLost)
    return `The database ${address} cannot be reached (${message}): check that it runs, and the address in --database.`;
  return undefined;
}

/** The texts of refusals, by SQLSTATE or the operating system's error code, or else by the driver's message. */
const sentences: readonly [RegExp, (address: string, message: string) => string][] = [
  [
    /^28/,
    (address, message) =>
      `The server of the database ${address} refuses the login (${message}): check the user and the password in --database, and the server's pg_hba.conf.`,
  ],
  [
    /password must be a/,
    (address) =>
      `The server of the database ${address} asks for a password, but --database has none: write postgres://USER:PASSWORD@HOST/NAME.`,
  ],
  [
    /^3D000$/,
    (address) =>
      `There is no database ${address} on its server: create it with \`createdb\`, or give --database another one.`,
  ],
  [
    /^42501$/,
    (address, message) =>
      `The user of the database ${address} lacks a privilege (${message}): grant it, or make the user the database's owner.`,
  ],
  [
    /^25006$/,
    (address) => `The database ${address} is read-only: give --database the primary server, not a standby.`,
  ],
  [
    /^55P03$/,
    (address) =>
      `The database ${address} is locked by another Berth that is migrating it: start again when the migration is done.`,
  ],
  [
    /^53300$/,
    (address) =>
      `The server of the database ${address} accepts no more connections: raise its max_connections, or stop other clients.`,
  ],
  [
    /^57P03$/,
    (address, message) =>
      `The server of the database ${address} is not ready (${message}): try again in a moment.`,
  ],
  [
    /(CERT|SIGNED|ERR_TLS|LEAF_SIGNATURE)|SSL connections?/,
    (address, message) =>
      `The database ${address} cannot be reached over TLS (${message}): set sslmode and sslrootcert in --database.`,
  ],
];

/** A database's URL for messages: without the password, and without parameters, which may contain one. */
export function toAddress(url: string): string {
  const { username, host, pathname, searchParams } = new URL(url);
  const user = username === '' ? '' : `${username}@`;
  return `postgres://${user}${host || (searchParams.get('host') ?? '')}${pathname}`;
}
