import { DatabaseRefused } from '../database-refused.ts';
import { toAddress } from './address.ts';
import { type PostgresFailure, toFailure } from './postgres-error.ts';

/** What went wrong while a database was opened, as a sentence where it is about the database and not about us. */
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

/** By SQLSTATE or the operating system's code, and where there is none by the driver's words. */
const sentences: readonly [RegExp, (address: string, message: string) => string][] = [
  [
    /^28/,
    (address, message) =>
      `The server of the database ${address} refuses the login (${message}): check the user and the password in --database, and the server's pg_hba.conf.`,
  ],
  [
    /password must be a/,
    (address) =>
      `The server of the database ${address} asks for a password, and --database has none: write postgres://USER:PASSWORD@HOST/NAME.`,
  ],
  [
    /^3D000$/,
    (address) =>
      `There is no database ${address} on its server: make it with \`createdb\`, or give --database another one.`,
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
      `The database ${address} is locked by another Berth that brings it to a new version: start again when that is done.`,
  ],
  [
    /^53300$/,
    (address) =>
      `The server of the database ${address} takes no more connections: raise its max_connections, or stop what else uses it.`,
  ],
  [
    /^57P03$/,
    (address, message) =>
      `The server of the database ${address} is not ready (${message}): start again soon.`,
  ],
  [
    /(CERT|SIGNED|ERR_TLS|LEAF_SIGNATURE)|SSL connections?/,
    (address, message) =>
      `The database ${address} cannot be reached over TLS (${message}): set sslmode and sslrootcert in --database.`,
  ],
];
