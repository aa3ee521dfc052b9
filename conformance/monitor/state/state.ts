import { randomBytes } from 'node:crypto';
import type { PlainSource } from '../../http/identity.ts';
import type { Entry, LedgerLine } from '../../resources/ledger.ts';
import { isOpen } from '../../resources/ledger.ts';
import type { Alert, StoredProbe } from '../records.ts';
import type { Database, Row } from './database.ts';
import { Lease } from './lease.ts';
import { openPostgres } from './postgres.ts';
import { createTables } from './schema.ts';
import { openSqlite } from './sqlite.ts';

/** A run with resources that exist or may exist. */
export interface OpenRun {
  runId: string;
  provider: string;
  baseUrl: string;
  keyPrint?: string;
  plain?: PlainSource;
  entries: Entry[];
}

/** When the next probe of a kind is due. Times are milliseconds since the epoch. */
export interface Moment {
  /** How many were drawn before. */
  drawn: number;
  drawnAt: number;
  dueAt: number;
}

/** Opens `sqlite:PATH` or `postgres://…`. @throws {StateError} */
export async function openState(name: string): Promise<State> {
  const database = await (/^postgres(ql)?:\/\//.test(name)
    ? openPostgres(name)
    : openSqlite(name.replace(/^sqlite:/, '')));
  await createTables(database);
  return new State(database);
}

/**
 * What the monitor knows: moments, runs with their resources, probes, transcripts, markers and alerts. Only the monitor
 * that holds the lease writes.
 */
export class State {
  readonly lease: Lease;
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
    this.lease = new Lease(database);
  }

  /** The secret from which the moments of this state are drawn. */
  async seed(): Promise<string> {
    await this.#database.query(
      "INSERT INTO monitor_settings (name, value) VALUES ('seed', $1) ON CONFLICT (name) DO NOTHING",
      [randomBytes(32).toString('hex')],
    );
    const [row] = await this.#database.query("SELECT value FROM monitor_settings WHERE name = 'seed'");
    return String(row?.['value']);
  }

  async moment(provider: string, kind: string): Promise<Moment | undefined> {
    const [row] = await this.#database.query(
      'SELECT drawn, drawn_at, due_at FROM monitor_moments WHERE provider = $1 AND kind = $2',
      [provider, kind],
    );
    return (
      row && { drawn: number(row, 'drawn'), drawnAt: number(row, 'drawn_at'), dueAt: number(row, 'due_at') }
    );
  }

  async setMoment(provider: string, kind: string, { drawn, drawnAt, dueAt }: Moment): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_moments (provider, kind, drawn, drawn_at, due_at) SELECT $2, $3, CAST($4 AS INTEGER), CAST($5 AS DOUBLE PRECISION), CAST($6 AS DOUBLE PRECISION)',
      'ON CONFLICT (provider, kind) DO UPDATE SET drawn = excluded.drawn, drawn_at = excluded.drawn_at, due_at = excluded.due_at',
      [provider, kind, drawn, drawnAt, dueAt],
    );
  }

  /** Stores a line of a run's ledger. A run is closed once none of its entries is open. */
  async append(provider: string, runId: string, line: LedgerLine): Promise<void> {
    if (line.line === 'closed') return;
    if (line.line === 'run')
      return this.lease.write(
        'INSERT INTO monitor_runs (run_id, provider, base_url, key_print, plain, started_at) SELECT $2, $3, $4, $5, $6, $7',
        'ON CONFLICT (run_id) DO NOTHING',
        [
          runId,
          provider,
          line.baseUrl,
          line.keyPrint ?? null,
          line.plain === undefined ? null : JSON.stringify(line.plain),
          line.startedAt,
        ],
      );
    const { entry } = line;
    return this.lease.write(
      'INSERT INTO monitor_entries (run_id, n, provider, is_open, intended_at, gone_at, entry) SELECT $2, CAST($3 AS INTEGER), $4, CAST($5 AS INTEGER), CAST($6 AS DOUBLE PRECISION), CAST($7 AS DOUBLE PRECISION), $8',
      'ON CONFLICT (run_id, n) DO UPDATE SET is_open = excluded.is_open, gone_at = excluded.gone_at, entry = excluded.entry',
      [
        runId,
        entry.n,
        provider,
        isOpen(entry) ? 1 : 0,
        entry.intendedAt,
        entry.goneAt ?? null,
        JSON.stringify(entry),
      ],
    );
  }

  /** The runs with open resources, oldest first. */
  async openRuns(provider: string): Promise<OpenRun[]> {
    const rows = await this.#database.query(
      'SELECT r.run_id, r.base_url, r.key_print, r.plain FROM monitor_runs r WHERE r.provider = $1 AND EXISTS (SELECT 1 FROM monitor_entries e WHERE e.run_id = r.run_id AND e.is_open = 1) ORDER BY r.started_at',
      [provider],
    );
    return Promise.all(
      rows.map(async (row) => {
        const entries = await this.#database.query(
          'SELECT entry FROM monitor_entries WHERE run_id = $1 ORDER BY n',
          [text(row, 'run_id')],
        );
        return {
          runId: text(row, 'run_id'),
          provider,
          baseUrl: text(row, 'base_url'),
          ...(row['key_print'] !== null && { keyPrint: text(row, 'key_print') }),
          ...(row['plain'] !== null && { plain: JSON.parse(text(row, 'plain')) as PlainSource }),
          entries: entries.map(toEntry),
        };
      }),
    );
  }

  /** The resources that existed or may have existed at or after `from`. */
  async entriesSince(provider: string, from: number): Promise<Entry[]> {
    const rows = await this.#database.query(
      'SELECT entry FROM monitor_entries WHERE provider = $1 AND (is_open = 1 OR intended_at >= $2 OR gone_at >= $2)',
      [provider, from],
    );
    return rows.map(toEntry);
  }

  /** The run and the entry of each instance that was read as gone, by its id. */
  async goneInstances(provider: string): Promise<Map<string, { runId: string; entry: Entry }>> {
    const rows = await this.#database.query(
      'SELECT run_id, entry FROM monitor_entries WHERE provider = $1 AND gone_at IS NOT NULL',
      [provider],
    );
    return new Map(
      rows.flatMap((row) => {
        const entry = toEntry(row);
        return entry.id === undefined ? [] : [[entry.id, { runId: text(row, 'run_id'), entry }] as const];
      }),
    );
  }

  async addProbe({ runId, provider, kind, startedAt, summary }: StoredProbe): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_probes (run_id, provider, kind, started_at, summary) SELECT $2, $3, $4, CAST($5 AS DOUBLE PRECISION), $6',
      'ON CONFLICT (run_id) DO NOTHING',
      [runId, provider, kind, startedAt, JSON.stringify(summary)],
    );
  }

  /** The probes that began at or after `from`, oldest first. */
  async probesSince(provider: string, from: number): Promise<StoredProbe[]> {
    const rows = await this.#database.query(
      'SELECT run_id, kind, started_at, summary FROM monitor_probes WHERE provider = $1 AND started_at >= $2 ORDER BY started_at',
      [provider, from],
    );
    return rows.map((row) => ({
      runId: text(row, 'run_id'),
      provider,
      kind: text(row, 'kind') as StoredProbe['kind'],
      startedAt: number(row, 'started_at'),
      summary: JSON.parse(text(row, 'summary')) as StoredProbe['summary'],
    }));
  }

  async addTranscript(provider: string, sha256: string, at: number, content: string): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_transcripts (sha256, provider, at, text) SELECT $2, $3, CAST($4 AS DOUBLE PRECISION), $5',
      'ON CONFLICT (sha256) DO NOTHING',
      [sha256, provider, at, content],
    );
  }

  /** The number of transcripts of a provider since `from`. */
  async countTranscripts(provider: string, from: number): Promise<number> {
    const sql =
      'SELECT CAST(COUNT(*) AS DOUBLE PRECISION) AS found FROM monitor_transcripts WHERE provider = $1 AND at >= $2';
    const [row] = await this.#database.query(sql, [provider, from]);
    return row === undefined ? 0 : number(row, 'found');
  }

  async transcript(sha256: string): Promise<string | undefined> {
    const [row] = await this.#database.query('SELECT text FROM monitor_transcripts WHERE sha256 = $1', [
      sha256,
    ]);
    return row && text(row, 'text');
  }

  async addMarker(provider: string, runId: string, marker: string, at: number): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_markers (marker, provider, run_id, at) SELECT $2, $3, $4, CAST($5 AS DOUBLE PRECISION)',
      'ON CONFLICT (marker) DO NOTHING',
      [marker, provider, runId, at],
    );
  }

  /** The run that wrote each marker to a machine of this provider. */
  async markers(provider: string): Promise<Map<string, string>> {
    const rows = await this.#database.query(
      'SELECT marker, run_id FROM monitor_markers WHERE provider = $1',
      [provider],
    );
    return new Map(rows.map((row) => [text(row, 'marker'), text(row, 'run_id')]));
  }

  /** Stores an alert. One with a known id is not stored again. */
  async addAlert(alert: Alert): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_alerts (id, at, provider, alert, sent) SELECT $2, CAST($3 AS DOUBLE PRECISION), $4, $5, 0',
      'ON CONFLICT (id) DO NOTHING',
      [alert.id, Date.parse(alert.at), alert.provider, JSON.stringify(alert)],
    );
  }

  /** The alerts that no receiver has accepted yet, oldest first. */
  async unsentAlerts(): Promise<Alert[]> {
    const rows = await this.#database.query('SELECT alert FROM monitor_alerts WHERE sent = 0 ORDER BY at');
    return rows.map((row) => JSON.parse(text(row, 'alert')) as Alert);
  }

  async markSent(alertId: string): Promise<void> {
    await this.#database.query('UPDATE monitor_alerts SET sent = 1 WHERE id = $1', [alertId]);
  }

  /** The status that was last reported for a provider. */
  async status(provider: string): Promise<string | undefined> {
    const [row] = await this.#database.query('SELECT value FROM monitor_settings WHERE name = $1', [
      `status/${provider}`,
    ]);
    return row && text(row, 'value');
  }

  async setStatus(provider: string, status: string): Promise<void> {
    await this.lease.write(
      'INSERT INTO monitor_settings (name, value) SELECT $2, $3',
      'ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      [`status/${provider}`, status],
    );
  }

  /** Removes what began before `before`. Open resources and markers are kept. */
  async prune(before: number): Promise<void> {
    for (const sql of [
      'DELETE FROM monitor_probes WHERE started_at < $1',
      'DELETE FROM monitor_transcripts WHERE at < $1',
      'DELETE FROM monitor_alerts WHERE at < $1 AND sent = 1',
    ])
      await this.#database.query(sql, [before]);
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

const text = (row: Row, name: string): string => String(row[name]);
const number = (row: Row, name: string): number => Number(row[name]);
const toEntry = (row: Row): Entry => JSON.parse(text(row, 'entry')) as Entry;
