import type Database from 'better-sqlite3';
import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { MachineRecord } from '../../../platform-model/records.ts';

/** A machine took or freed a unit of an offer, or was refused because all were taken. */
export interface UnitEvent {
  /** Milliseconds since the epoch. A unit is freed when its machine ended, not when that was noticed. */
  at: number;
  event: 'taken' | 'freed' | 'refused';
  ref: OwnerRef;
  offerId: string;
  datacenter: string;
}

/** Maximum number of events. Older ones are deleted. */
const MAX_EVENTS = 100_000;

/** The history of every unit, written together with the machine. Tests compare sales with it. */
export class UnitHistory {
  readonly #db: Database.Database;

  constructor(db: Database.Database) {
    this.#db = db;
    db.exec('CREATE TABLE IF NOT EXISTS unit_events (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)');
    db.prepare(
      'DELETE FROM unit_events WHERE seq <= (SELECT coalesce(max(seq), 0) FROM unit_events) - ?',
    ).run(MAX_EVENTS);
  }

  /** Records the effect of a machine's change on its unit. A machine that does not exist is undefined. */
  record(before: MachineRecord | undefined, after: MachineRecord | undefined, now: number): void {
    const record = after ?? before;
    if (record === undefined || (before?.holdsUnit === true) === (after?.holdsUnit === true)) return;
    const endedAt = Math.min(now, before?.until ?? now);
    if (after?.holdsUnit === true) this.add('taken', record.spec, now);
    else this.add('freed', record.spec, endedAt);
  }

  add(event: UnitEvent['event'], { ref, offerId, datacenter }: MachineRecord['spec'], at: number): void {
    const entry: UnitEvent = { at, event, ref, offerId, datacenter };
    this.#db.prepare('INSERT INTO unit_events (body) VALUES (?)').run(JSON.stringify(entry));
  }

  all(): UnitEvent[] {
    const rows = this.#db.prepare('SELECT body FROM unit_events ORDER BY seq').all() as { body: string }[];
    return rows.map(({ body }) => JSON.parse(body) as UnitEvent);
  }
}
