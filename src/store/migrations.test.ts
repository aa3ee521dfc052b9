import { expect, it } from 'vitest';
import { readMigrations } from './migrations.ts';

it.each(['sqlite', 'postgres', 'marketplace-sqlite', 'marketplace-postgres'] as const)(
  'the migrations of %s are numbered 1, 2, 3 …',
  (database) => {
    const versions = readMigrations(database).map(({ version }) => version);
    expect(versions).not.toEqual([]);
    expect(versions).toEqual(versions.map((_, index) => index + 1));
  },
);
