import { Fatal, StoreUnavailable } from '../ports/errors.ts';

/** The database cannot be opened and was not changed. The message is one sentence with the reason and the remedy. */
export class DatabaseRefused extends Fatal {
  override readonly name = 'DatabaseRefused';
}

/** The command that serves from a database, as error messages name it. */
export type Command = 'berth serve' | 'berth marketplace';

/** The error for a schema version that is not this program's newest and may not be migrated. */
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

/** The error for a database of Berth's other program. */
export function refusedOwner(database: string, owner: Command, command: Command): DatabaseRefused {
  return new DatabaseRefused(
    `The database ${database} belongs to \`${owner}\`: give \`${command}\` its own database with --database.`,
  );
}

/**
 * A newer Berth has changed the tables since this process opened the database, so this process may not write any more.
 * A server that was paused during an upgrade gets this at its next write.
 */
export class SchemaChanged extends StoreUnavailable {
  override readonly name = 'SchemaChanged';

  constructor(version: number | null, known: number) {
    super(
      `the tables have version ${version ?? 'unknown'} now, and this program writes version ${known}: another Berth has migrated the database. Stop this one, and run the version that migrated it`,
    );
  }
}
