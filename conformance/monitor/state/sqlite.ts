import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Statement } from 'better-sqlite3';
import { systemErrorText } from '../../text/wording.ts';
import { type Database, type Row, StateError } from './database.ts';

/** Opens a file of SQLite, and creates it if it is missing. @throws {StateError} */
export async function openSqlite(path: string): Promise<Database> {
  const { default: Sqlite } = await import('better-sqlite3');
  try {
    mkdirSync(dirname(path), { recursive: true });
    const file = new Sqlite(path, { timeout: 5000 });
    file.pragma('journal_mode = WAL');
    // An intent is on disk before its request is sent.
    file.pragma('synchronous = FULL');
    const statements = new Map<string, Statement>();
    return {
      lock: '',
      async query(sql, parameters = []) {
        const statement = statements.get(sql) ?? file.prepare(sql);
        statements.set(sql, statement);
        const named = Object.fromEntries(parameters.map((value, index) => [index + 1, value]));
        const given = parameters.length === 0 ? [] : [named];
        if (statement.reader) return statement.all(...given) as Row[];
        statement.run(...given);
        return [];
      },
      async close() {
        file.close();
      },
    };
  } catch (error) {
    throw new StateError(
      `the state ${path} cannot be opened (${systemErrorText(error)}): name a file in a folder that can be written`,
    );
  }
}
