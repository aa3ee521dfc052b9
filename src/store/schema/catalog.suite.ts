import { describe, expect, it } from 'vitest';
import type { MigrationsOf } from '../migrations.ts';
import { readSnapshot, type Snapshot, tablesOf, toSnapshot, toStatements } from './drizzle-kit.fixture.ts';
import type { Dialect } from './postgres.ts';

/** A database's own description of its tables. Equal tables have equal descriptions. */
export type Catalog = Record<string, unknown>;

interface Setup {
  dialect: Dialect;
  /** The catalog of a new database after the migrations, and after `change`. */
  migrated(change?: string): Promise<Catalog>;
  /** The catalog of a new database in which only `statements` were run. */
  made(statements: readonly string[]): Promise<Catalog>;
}

/** Tests that the migrations produce the tables that src/store/schema/ defines. */
export function describeCatalog(database: MigrationsOf, { dialect, migrated, made }: Setup): void {
  const madeOf = async (tables: Snapshot) => made(await toStatements(database, {}, tables));
  let defined: Promise<Catalog> | undefined;
  const definition = () => (defined ??= toSnapshot(database).then(madeOf));

  describe(`the tables of ${database}`, () => {
    it('are as defined after the migrations: columns, keys, references, indexes, checks', async () => {
      expect(Object.keys(await definition()).length).toBeGreaterThan(10);
      expect(await migrated()).toEqual(await definition());
    });

    it('have a migration for all that changed in their definition: run `npm run generate -- migration NAME`', async () => {
      const [drafted, now] = [readSnapshot(database), await toSnapshot(database)];
      expect(await toStatements(database, drafted, now)).toEqual([]);
      expect(drafted).toEqual(now);
    });

    it.each([
      ['column', 'ALTER TABLE losses ADD COLUMN planted TEXT'],
      ['index', 'CREATE INDEX planted ON losses (at) WHERE at > 0'],
      ['table', 'CREATE TABLE planted (id TEXT PRIMARY KEY)'],
    ])('differ by a %s that only the database has', async (_what, change) => {
      expect(await migrated(change)).not.toEqual(await definition());
    });

    it('differ by a column that only the definition has', async () => {
      const planting = {
        ...dialect,
        table: (name: string, columns: object, ...rest: unknown[]) => {
          const more = name === 'losses' ? { planted: dialect.text('planted') } : {};
          return Reflect.apply(dialect.table, undefined, [name, { ...columns, ...more }, ...rest]);
        },
      } as Dialect;
      const planted = await toSnapshot(database, tablesOf[database](planting));
      expect(await migrated()).not.toEqual(await madeOf(planted));
      expect(await toStatements(database, readSnapshot(database), planted)).toEqual([
        expect.stringMatching(/^ALTER TABLE .losses. ADD (COLUMN )?.planted. text;$/),
      ]);
    });
  });
}
