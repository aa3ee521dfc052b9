import Database from 'better-sqlite3';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { DatabaseError } from 'pg';
import { describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../ports/errors.ts';
import { fromPostgres, PostgresFailure } from './postgres/errors.ts';
import { fromSqlite } from './sqlite/errors.ts';

const SECRET = 'canary';
const postgres = (code: string) =>
  fromPostgres(
    new DrizzleQueryError(
      'insert into "a" values ($1)',
      [SECRET],
      Object.assign(new DatabaseError(`bad ${SECRET}`, 0, 'error'), { code }),
    ),
  );

describe('an error of a database [bug-is-no-outage]', () => {
  const outages =
    '08006 25006 26000 28P01 3D000 40001 40P01 42501 42703 42P01 42P05 53100 53300 55P03 57014 57P01 58030 XX001';
  it.each(outages.split(' '))('is an outage with SQLSTATE %s', (code) => {
    expect(postgres(code)).toBeInstanceOf(StoreUnavailable);
  });

  it.each('0A000 22003 22021 22P02 23505 42601 42804 54000 P0001'.split(' '))(
    'is a bug with SQLSTATE %s, and names the statement without its values',
    (code) => {
      const failure = postgres(code);
      expect(failure).toBeInstanceOf(PostgresFailure);
      if (code !== '42601' && code !== '42804')
        expect((failure as Error).message).toBe(
          `PostgreSQL refuses a statement with ${code} (insert into "a" values ($1))`,
        );
    },
  );

  it.each([
    ['SQLITE_CONSTRAINT_UNIQUE', 'UNIQUE constraint failed: a.b', false],
    ['SQLITE_TOOBIG', 'string or blob too big', false],
    ['SQLITE_ERROR', 'near "x": syntax error', false],
    ['SQLITE_ERROR', 'no such column: a', true],
    ['SQLITE_FULL', 'database or disk is full', true],
    ['SQLITE_CORRUPT', 'database disk image is malformed', true],
  ])('is classified alike by SQLite: %s, %s', (code, message, isOutage) => {
    expect(fromSqlite(new Database.SqliteError(message, code)) instanceof StoreUnavailable).toBe(isOutage);
  });
});
