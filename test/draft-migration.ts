import { writeFileSync } from 'node:fs';
import { readMigrations } from '../src/store/migrations.ts';
import {
  databases,
  readSnapshot,
  snapshotFile,
  toSnapshot,
  toStatements,
} from '../src/store/schema/drizzle-kit.fixture.ts';

// `npm run generate -- migration NAME` writes one migration for each database whose definition in src/store/schema/ has
// changed since its newest migration, and renews the snapshot by which that is known. Add by hand what drizzle-kit does
// not know: how rows are filled, defaults, triggers, functions.

const name = process.argv[2] ?? '';
if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) {
  process.stderr.write('usage: npm run generate -- migration NAME, such as volume-request\n');
  process.exit(2);
}

for (const database of databases) {
  const after = await toSnapshot(database);
  const statements = await toStatements(database, readSnapshot(database), after);
  if (statements.length === 0) continue;
  const version = (readMigrations(database).at(-1)?.version ?? 0) + 1;
  const file = `${database}-${String(version).padStart(4, '0')}-${name}.sql`;
  writeFileSync(
    new URL(`../src/store/migrations/${file}`, import.meta.url),
    statements.map((statement) => `${statement.trim()}\n`).join(''),
    { flag: 'wx' },
  );
  // One table a line.
  const tables = Object.entries(after).map((entry) => entry.map((part) => JSON.stringify(part)).join(': '));
  writeFileSync(snapshotFile(database), `{\n${tables.join(',\n')}\n}\n`);
  process.stdout.write(`src/store/migrations/${file}\n`);
}
