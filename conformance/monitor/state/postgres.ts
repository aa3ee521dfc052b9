import { systemErrorText } from '../../text/wording.ts';
import { type Database, type Row, StateError } from './database.ts';

const CONNECTIONS = 4;
const TIMEOUT_MS = 10_000;

/** Opens a database of PostgreSQL, by its URL. @throws {StateError} */
export async function openPostgres(url: string): Promise<Database> {
  const { Pool } = await import('pg');
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
    statement_timeout: TIMEOUT_MS,
  });
  // A connection that the server closed while idle: the next statement opens another.
  pool.on('error', () => {});
  const query = async (sql: string, parameters: readonly unknown[] = []): Promise<Row[]> =>
    (await pool.query(sql, [...parameters])).rows;
  try {
    await query('SELECT 1');
  } catch (error) {
    await pool.end();
    const { hostname, pathname } = new URL(url);
    throw new StateError(
      `the state postgres://${hostname}${pathname} cannot be opened (${systemErrorText(error)}): check \`state\`, and that the server runs`,
    );
  }
  return { lock: ' FOR SHARE', query, close: () => pool.end() };
}
