import { Fatal } from '../ports/fatal.ts';

/** Why a database cannot be opened, in one sentence with the remedy. Nothing was changed. */
export class DatabaseRefused extends Fatal {
  override readonly name = 'DatabaseRefused';
}

/** The command that serves from a database, as sentences name it. */
export type Command = 'berth serve' | 'berth marketplace';

/** Its schema is of another version than the newest that this program knows, and nothing may be migrated. */
export function refusedVersion(
  database: string,
  version: number,
  newest: number,
  command: Command,
): DatabaseRefused {
  const versions = (age: string): string =>
    `The database ${database} is ${age} (version ${version}) than this program (version ${newest})`;
  return new DatabaseRefused(
    version > newest
      ? `${versions('newer')}: run the Berth that wrote it, or a later one.`
      : `${versions('older')}: start its \`${command}\` once, or run the Berth that wrote it.`,
  );
}

/** It belongs to the other of Berth's programs. */
export function refusedOwner(database: string, owner: Command, command: Command): DatabaseRefused {
  return new DatabaseRefused(
    `The database ${database} is that of \`${owner}\`: give \`${command}\` one of its own with --database.`,
  );
}
