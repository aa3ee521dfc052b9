/** Why a database cannot be opened, in one sentence with the remedy. Nothing was changed. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
}

/** Its schema is of another version than the newest that this program knows, and nothing may be migrated. */
export function refusedVersion(database: string, version: number, newest: number): DatabaseRefused {
  const versions = (age: string): string =>
    `The database ${database} is ${age} (version ${version}) than this program (version ${newest})`;
  return new DatabaseRefused(
    version > newest
      ? `${versions('newer')}: run the Berth that wrote it, or a later one.`
      : `${versions('older')}: start its \`berth serve\` once, or run the Berth that wrote it.`,
  );
}
