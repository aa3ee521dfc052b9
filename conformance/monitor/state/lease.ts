import { randomBytes } from 'node:crypto';
import { livenessOf, type ProcessIdentity } from '../../resources/process-identity.ts';
import type { Database, Row, Value } from './database.ts';

/** How long a monitor holds the state without renewing its lease. */
export const LEASE_MS = 5 * 60_000;

/** Another monitor has taken the state over. Nothing was written, and nothing may be bought. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';

  constructor() {
    super('another monitor has taken the state over');
  }
}

/** One monitor at a time holds the state; each write repeats the guard, so that one that lost it writes nothing. */
export class Lease {
  readonly #database: Database;
  readonly #token = randomBytes(16).toString('hex');

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Takes the lease, or renews it. Returns undefined if this monitor holds it, otherwise who does. The lease of a process
   * that has ended on this host, or that is longer than a lease can be (the clock was set back), is taken over.
   */
  async take(holder: ProcessIdentity, now: number): Promise<string | undefined> {
    const [row] = await this.#database.query('SELECT token, holder FROM monitor_lease WHERE id = 1');
    const current = row === undefined ? undefined : (JSON.parse(String(row['holder'])) as ProcessIdentity);
    const isOver = current !== undefined && row?.['token'] !== this.#token && livenessOf(current) === 'ended';
    const taken = await this.#database.query(
      'INSERT INTO monitor_lease (id, token, holder, until) VALUES (1, $1, $2, $3) ON CONFLICT (id) DO UPDATE SET token = excluded.token, holder = excluded.holder, until = excluded.until WHERE monitor_lease.token IN ($1, $4) OR monitor_lease.until < $5 OR monitor_lease.until > $6 RETURNING id',
      [
        this.#token,
        JSON.stringify(holder),
        now + LEASE_MS,
        isOver ? String(row?.['token']) : this.#token,
        now,
        now + LEASE_MS * 2,
      ],
    );
    if (taken.length > 0) return undefined;
    return current === undefined ? 'another monitor' : `process ${current.pid} on ${current.host}`;
  }

  /** Whether this monitor still holds the lease, which is renewed. */
  async renew(now: number): Promise<boolean> {
    const sql = 'UPDATE monitor_lease SET until = $2 WHERE token = $1 RETURNING id';
    return (await this.#database.query(sql, [this.#token, now + LEASE_MS])).length > 0;
  }

  async release(): Promise<void> {
    await this.#database.query('DELETE FROM monitor_lease WHERE token = $1', [this.#token]);
  }

  /** Runs `insert`, whose source is a SELECT without parameter `$1`, while the lease is held. @throws {LeaseLost} */
  async write(insert: string, onConflict: string, parameters: readonly Value[]): Promise<void> {
    const held = `EXISTS (SELECT 1 FROM monitor_lease WHERE token = $1${this.#database.lock})`;
    const written: Row[] = await this.#database.query(
      `${insert} WHERE ${held} ${onConflict} RETURNING 1 AS done`,
      [this.#token, ...parameters],
    );
    // A row that was there already is not written again.
    if (written.length === 0) await this.#require();
  }

  async #require(): Promise<void> {
    const sql = 'SELECT 1 AS held FROM monitor_lease WHERE token = $1';
    if ((await this.#database.query(sql, [this.#token])).length === 0) throw new LeaseLost();
  }
}
