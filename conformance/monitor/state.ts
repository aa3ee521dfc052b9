import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import type { Entry } from '../resources/ledger.ts';
import { isOpen } from '../resources/ledger.ts';
import {
  makeFolder,
  readStateFolder,
  type StateFolder,
  type StoredLedger,
} from '../resources/ledger-file.ts';
import { systemErrorText } from '../text/wording.ts';
import type { Alert, StoredProbe } from './records.ts';

/** When the next probe of a kind is due. Times are milliseconds since the epoch. */
export interface Moment {
  /** How many were drawn before. */
  drawn: number;
  drawnAt: number;
  dueAt: number;
}

/** An instance that was read as gone, and the ledger of its run. */
export interface GoneInstance {
  stored: StoredLedger;
  entry: Entry & { id: string };
}

/** The state cannot be opened. The message says why, and what to do. */
export class StateError extends Error {
  override readonly name = 'StateError';
}

const VERSION = 1;
const TABLES = `
  CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS moments (provider TEXT NOT NULL, kind TEXT NOT NULL, drawn INTEGER NOT NULL, drawn_at REAL NOT NULL, due_at REAL NOT NULL, PRIMARY KEY (provider, kind));
  CREATE TABLE IF NOT EXISTS probes (run_id TEXT PRIMARY KEY, provider TEXT NOT NULL, kind TEXT NOT NULL, started_at REAL NOT NULL, summary TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS probes_time ON probes (provider, started_at);
  CREATE TABLE IF NOT EXISTS transcripts (sha256 TEXT PRIMARY KEY, provider TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS markers (marker TEXT PRIMARY KEY, provider TEXT NOT NULL, run_id TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, at REAL NOT NULL, alert TEXT NOT NULL, sent INTEGER NOT NULL);
`;

/** Opens a folder, and creates it if it is missing. @throws {StateError} */
export async function openState(folder: string): Promise<State> {
  const { default: Sqlite } = await import('better-sqlite3');
  try {
    makeFolder(folder);
    const database = new Sqlite(join(folder, 'monitor.db'), { timeout: 5000 });
    database.pragma('journal_mode = WAL');
    const version = Number(database.pragma('user_version', { simple: true }));
    if (version > VERSION) throw new Error(`it has version ${version}, and this program reads ${VERSION}`);
    database.exec(TABLES);
    database.pragma(`user_version = ${VERSION}`);
    return new State(folder, database, () => new Sqlite(join(folder, 'lock.db'), { timeout: 0 }));
  } catch (error) {
    const why = `the state ${folder} cannot be opened (${systemErrorText(error)})`;
    throw new StateError(`${why}: name a folder that can be written`);
  }
}

/**
 * What the monitor knows: moments, probes, transcripts, markers and alerts in a database, and below `ledgers` the ledgers of
 * its runs, a folder for each provider.
 */
export class State {
  readonly #folder: string;
  readonly #database: Database;
  readonly #openLock: () => Database;

  constructor(folder: string, database: Database, openLock: () => Database) {
    this.#folder = folder;
    this.#database = database;
    this.#openLock = openLock;
  }

  /** Holds the state until it is disposed of, or the process ends. @throws {StateError} if another monitor holds it */
  lock(): Disposable {
    const file = this.#openLock();
    try {
      file.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      file.close();
      throw new StateError(
        `the state ${this.#folder} cannot be held (${systemErrorText(error)}): end the other monitor that works on it`,
      );
    }
    return { [Symbol.dispose]: () => file.close() };
  }

  /** The folder of the ledgers of a provider's runs. */
  ledgersOf(provider: string): string {
    return join(this.#folder, 'ledgers', provider);
  }

  readLedgers(provider: string): StateFolder {
    return readStateFolder(this.ledgersOf(provider));
  }

  /** The resources that existed or may have existed at or after `from`. */
  entriesSince(provider: string, from: number): Entry[] {
    const entries = this.readLedgers(provider).all.flatMap((ledger) => ledger.entries);
    return entries.filter(
      (entry) =>
        isOpen(entry) || entry.intendedAt >= from || (entry.goneAt ?? Number.NEGATIVE_INFINITY) >= from,
    );
  }

  /** Each instance that was read as gone, by its id. */
  goneInstances(provider: string): Map<string, GoneInstance> {
    return new Map(
      this.readLedgers(provider).all.flatMap((stored) =>
        stored.entries.flatMap(({ id, ...entry }) =>
          id === undefined || entry.state !== 'gone'
            ? []
            : [[id, { stored, entry: { id, ...entry } }] as const],
        ),
      ),
    );
  }

  /** The secret from which the moments of this state are drawn. */
  seed(): string {
    const known = this.#setting('seed');
    if (known !== undefined) return known;
    const seed = randomBytes(32).toString('hex');
    this.#set('seed', seed);
    return seed;
  }

  moment(provider: string, kind: string): Moment | undefined {
    return this.#get<Moment>(
      'SELECT drawn, drawn_at AS drawnAt, due_at AS dueAt FROM moments WHERE provider = ? AND kind = ?',
      provider,
      kind,
    );
  }

  setMoment(provider: string, kind: string, { drawn, drawnAt, dueAt }: Moment): void {
    this.#run('INSERT OR REPLACE INTO moments VALUES (?, ?, ?, ?, ?)', provider, kind, drawn, drawnAt, dueAt);
  }

  addProbe({ runId, provider, kind, startedAt, summary }: StoredProbe): void {
    const sql = 'INSERT OR IGNORE INTO probes VALUES (?, ?, ?, ?, ?)';
    this.#run(sql, runId, provider, kind, startedAt, JSON.stringify(summary));
  }

  /** The probes that began at or after `from`, oldest first. */
  probesSince(provider: string, from: number): StoredProbe[] {
    const sql =
      'SELECT run_id AS runId, provider, kind, started_at AS startedAt, summary FROM probes WHERE provider = ? AND started_at >= ? ORDER BY started_at';
    const rows = this.#all<Omit<StoredProbe, 'summary'> & { summary: string }>(sql, provider, from);
    return rows.map((row) => ({ ...row, summary: JSON.parse(row.summary) as StoredProbe['summary'] }));
  }

  addTranscript(provider: string, sha256: string, at: number, content: string): void {
    this.#run('INSERT OR IGNORE INTO transcripts VALUES (?, ?, ?, ?)', sha256, provider, at, content);
  }

  /** The number of transcripts of a provider since `from`. */
  countTranscripts(provider: string, from: number): number {
    const sql = 'SELECT COUNT(*) AS found FROM transcripts WHERE provider = ? AND at >= ?';
    return this.#get<{ found: number }>(sql, provider, from)?.found ?? 0;
  }

  transcript(sha256: string): string | undefined {
    return this.#get<{ text: string }>('SELECT text FROM transcripts WHERE sha256 = ?', sha256)?.text;
  }

  addMarker(provider: string, runId: string, marker: string): void {
    this.#run('INSERT OR IGNORE INTO markers VALUES (?, ?, ?)', marker, provider, runId);
  }

  /** The run that wrote each marker to a machine of this provider. */
  markers(provider: string): Map<string, string> {
    const rows = this.#all<{ marker: string; runId: string }>(
      'SELECT marker, run_id AS runId FROM markers WHERE provider = ?',
      provider,
    );
    return new Map(rows.map(({ marker, runId }) => [marker, runId]));
  }

  /** Stores an alert. One with a known id is not stored again. */
  addAlert(alert: Alert): void {
    const sql = 'INSERT OR IGNORE INTO alerts VALUES (?, ?, ?, 0)';
    this.#run(sql, alert.id, Date.parse(alert.at), JSON.stringify(alert));
  }

  /** The alerts that no receiver has accepted yet, oldest first. */
  unsentAlerts(): Alert[] {
    const rows = this.#all<{ alert: string }>('SELECT alert FROM alerts WHERE sent = 0 ORDER BY at');
    return rows.map(({ alert }) => JSON.parse(alert) as Alert);
  }

  markSent(alertId: string): void {
    this.#run('UPDATE alerts SET sent = 1 WHERE id = ?', alertId);
  }

  /** The status that was last reported for a provider. */
  status(provider: string): string | undefined {
    return this.#setting(`status/${provider}`);
  }

  setStatus(provider: string, status: string): void {
    this.#set(`status/${provider}`, status);
  }

  /** Removes what began before `before`. Ledgers and markers are kept. */
  prune(before: number): void {
    this.#run('DELETE FROM probes WHERE started_at < ?', before);
    this.#run('DELETE FROM transcripts WHERE at < ?', before);
    this.#run('DELETE FROM alerts WHERE at < ? AND sent = 1', before);
  }

  close(): void {
    this.#database.close();
  }

  #setting(name: string): string | undefined {
    return this.#get<{ value: string }>('SELECT value FROM settings WHERE name = ?', name)?.value;
  }

  #set(name: string, value: string): void {
    this.#run('INSERT OR REPLACE INTO settings VALUES (?, ?)', name, value);
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
  }

  #get<T>(sql: string, ...values: (string | number)[]): T | undefined {
    return this.#database.prepare(sql).get(...values) as T | undefined;
  }

  #all<T>(sql: string, ...values: (string | number)[]): T[] {
    return this.#database.prepare(sql).all(...values) as T[];
  }
}
