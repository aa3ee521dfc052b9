import { type Database, StateError } from './database.ts';

const VERSION = 1;

/** DOUBLE PRECISION holds milliseconds since the epoch exactly, and both databases return it as a number. */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS monitor_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS monitor_lease (id INTEGER PRIMARY KEY, token TEXT NOT NULL, holder TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)',
  'CREATE TABLE IF NOT EXISTS monitor_moments (provider TEXT NOT NULL, kind TEXT NOT NULL, drawn INTEGER NOT NULL, drawn_at DOUBLE PRECISION NOT NULL, due_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (provider, kind))',
  'CREATE TABLE IF NOT EXISTS monitor_runs (run_id TEXT PRIMARY KEY, provider TEXT NOT NULL, base_url TEXT NOT NULL, key_print TEXT, plain TEXT, started_at TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS monitor_entries (run_id TEXT NOT NULL, n INTEGER NOT NULL, provider TEXT NOT NULL, is_open INTEGER NOT NULL, intended_at DOUBLE PRECISION NOT NULL, gone_at DOUBLE PRECISION, entry TEXT NOT NULL, PRIMARY KEY (run_id, n))',
  'CREATE INDEX IF NOT EXISTS monitor_entries_time ON monitor_entries (provider, intended_at)',
  'CREATE TABLE IF NOT EXISTS monitor_probes (run_id TEXT PRIMARY KEY, provider TEXT NOT NULL, kind TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL, summary TEXT NOT NULL)',
  'CREATE INDEX IF NOT EXISTS monitor_probes_time ON monitor_probes (provider, started_at)',
  'CREATE TABLE IF NOT EXISTS monitor_transcripts (sha256 TEXT PRIMARY KEY, provider TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, text TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS monitor_markers (marker TEXT PRIMARY KEY, provider TEXT NOT NULL, run_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)',
  'CREATE TABLE IF NOT EXISTS monitor_alerts (id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, provider TEXT NOT NULL, alert TEXT NOT NULL, sent INTEGER NOT NULL)',
];

/** Creates the tables that are missing. @throws {StateError} if a later version of the suite made them */
export async function createTables(database: Database): Promise<void> {
  for (const table of TABLES) await database.query(table);
  await database.query(
    `INSERT INTO monitor_settings (name, value) VALUES ('version', '${VERSION}') ON CONFLICT (name) DO NOTHING`,
  );
  const [row] = await database.query("SELECT value FROM monitor_settings WHERE name = 'version'");
  if (Number(row?.['value']) !== VERSION)
    throw new StateError(
      `the state has version ${row?.['value']}, and this program reads version ${VERSION}: run the version of berth that made it`,
    );
}
