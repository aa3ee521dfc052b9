import type { Clock } from '../../ports/clock.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { ListFiles } from '../../ports/list-files.ts';
import type { Log } from '../../ports/log.ts';
import { type AlarmKey, type AlarmKind, type AlarmRecord, standsAfterMs } from '../model/alarm.ts';
import type { Store } from '../model/store.ts';

/** How often the row of an alarm that stands is written again. */
const REFRESH_MS = 60_000;
/** A row that no server has written for so long is of a server that has ended: it is removed. */
const EXPIRES_MS = 10 * 60_000;
/** Rows in one transaction. */
const BATCH = 100;

/** An alarm as it is raised. */
export interface Raised extends AlarmKey {
  platform: string | null;
  text: string;
  /** The particulars, after the text of the row. */
  detail?: string;
  /** Those of the line in the log. */
  fields?: object;
  /** It ends by itself unless it is raised again within this time; absent: as its kind says, or until `end`. */
  forMs?: number;
}

interface Standing {
  alarm: AlarmRecord;
  raisedAt: number;
  forMs: number;
  storedAt: number;
  storedText: string;
}

interface Deps {
  store: Pick<Store, 'read' | 'transact'>;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'warn' | 'error'>;
  /** The name of this server among those that share the database. */
  server: string;
  /** Absent: it keeps no files. */
  lists?: ListFiles | undefined;
}

/**
 * The standing alarms. Each that this process raises is logged once and stored, so that every server, the metrics and the
 * commands know it; the row is removed when the process that raised it says that it is over. While the store does not
 * answer they stand in memory, and are stored later.
 */
export class Alarms {
  readonly #deps: Deps;
  readonly #startedAt: number;
  /** What this process sees. */
  readonly #seen = new Map<string, Standing>();
  /** What has ended, and whose row is not removed yet. */
  readonly #over = new Map<string, AlarmKey>();
  /** The rows as they were read last: of all processes. */
  #rows: ReadonlyMap<string, AlarmRecord> = new Map();
  #last: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  get server(): string {
    return this.#deps.server;
  }

  /** Logs it to `log`, unless this process raised it before and it has not ended since. */
  raise(
    { kind, subject, platform, text, detail, fields = {}, forMs }: Raised,
    log: Pick<Log, 'error'> = this.#deps.log,
  ): void {
    const now = this.#deps.clock.now();
    const key = toKey({ kind, subject });
    const seen = this.#seen.get(key);
    const row = this.#rows.get(key);
    const alarm = {
      kind,
      subject,
      platform,
      text: detail === undefined ? text : `${text} (${detail})`,
      since: seen?.alarm.since ?? row?.since ?? now,
      lastSeenAt: now,
      acknowledgedBy: row?.acknowledgedBy ?? seen?.alarm.acknowledgedBy ?? null,
    };
    const { storedAt = Number.NEGATIVE_INFINITY, storedText = '' } = seen ?? {};
    const stands = forMs ?? standsAfterMs.get(kind) ?? Number.POSITIVE_INFINITY;
    this.#seen.set(key, { alarm, raisedAt: now, forMs: stands, storedAt, storedText });
    this.#over.delete(key);
    if (seen !== undefined) return;
    log.error(fields, text);
    void this.sync();
  }

  /** It is over, as this process can tell. */
  end(alarm: AlarmKey): void {
    const key = toKey(alarm);
    const wasSeen = this.#seen.delete(key);
    if (!wasSeen && !this.#rows.has(key)) return;
    this.#over.set(key, alarm);
    void this.sync();
  }

  /** Ends those of a kind on a platform whose subject is none of `subjects`. */
  endOthers(kind: AlarmKind, platform: string, subjects: ReadonlySet<string>): void {
    for (const alarm of this.standing())
      if (alarm.kind === kind && alarm.platform === platform && !subjects.has(alarm.subject)) this.end(alarm);
  }

  /** Where the list is, as the end of a sentence. Never rejects. */
  async listTo(name: string, lines: readonly string[]): Promise<string> {
    const { lists } = this.#deps;
    if (lists === undefined) return '';
    try {
      return `; all are listed in ${await lists.write(name, lines)}`;
    } catch (error) {
      return `; their list cannot be written: ${error instanceof Error ? error.message : error}`;
    }
  }

  async removeList(name: string): Promise<void> {
    await this.#deps.lists?.remove(name);
  }

  /** What stands, of all servers: as it was read some seconds ago, with what this process has seen since. */
  standing(): AlarmRecord[] {
    const all = new Map([...this.#rows].filter(([key]) => !this.#over.has(key)));
    for (const [key, { alarm }] of this.#seen) all.set(key, { ...all.get(key), ...alarm });
    return [...all.values()];
  }

  /** Stores what has changed, and reads the rows. Never rejects: what could not be stored is stored the next time. */
  sync(): Promise<void> {
    if (this.#isClosed) return this.#last;
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      return this.#round();
    });
    this.#last = this.#next;
    return this.#next;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  async #round(): Promise<void> {
    const { store, log } = this.#deps;
    try {
      this.#endByTime();
      await this.#write();
      this.#adopt(await store.read.alarms.list());
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        log.warn({ err: error }, 'the alarms could not be stored; they will be in some seconds');
    }
  }

  #endByTime(): void {
    const now = this.#deps.clock.now();
    for (const [key, { alarm, raisedAt, forMs }] of this.#seen)
      if (now - raisedAt >= forMs) {
        this.#seen.delete(key);
        this.#over.set(key, alarm);
      }
  }

  async #write(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    // What happened once is not seen again, but when it happens again.
    const isDue = ({ alarm, raisedAt, storedAt, storedText }: Standing): boolean =>
      alarm.text !== storedText ||
      (standsAfterMs.has(alarm.kind) ? storedAt < raisedAt : Math.abs(now - storedAt) >= REFRESH_MS);
    // In one order, so that no two servers wait for each other.
    const due = [...this.#seen].filter(([, seen]) => isDue(seen)).sort(byKey);
    for (let begin = 0; begin < due.length; begin += BATCH) {
      const batch = due.slice(begin, begin + BATCH);
      await store.transact(async (tx) => {
        for (const [, { alarm }] of batch) await tx.alarms.put({ ...alarm, lastSeenAt: now });
      });
      for (const [, seen] of batch) {
        seen.storedAt = now;
        seen.storedText = seen.alarm.text;
      }
    }
    const over = [...this.#over].sort(byKey);
    const expired = this.#expired(now);
    if (over.length === 0 && expired.size === 0) return;
    for (let begin = 0; begin < over.length; begin += BATCH) {
      const batch = over.slice(begin, begin + BATCH);
      await store.transact(async (tx) => {
        for (const [, alarm] of batch) await tx.alarms.remove(alarm);
      });
      for (const [key, alarm] of batch) if (this.#over.get(key) === alarm) this.#over.delete(key);
    }
    for (const [kind, seenBefore] of expired)
      await store.transact((tx) => tx.alarms.removeSeenBefore(seenBefore, [kind]));
  }

  /** The kinds of which rows are over. Not before this process had the time to see for itself what an earlier one saw. */
  #expired(now: number): Map<AlarmKind, number> {
    if (now - this.#startedAt < EXPIRES_MS) return new Map();
    const rows = [...this.#rows.values()].map(({ kind, lastSeenAt }) => ({
      kind,
      lastSeenAt,
      seenBefore: now - (standsAfterMs.get(kind) ?? EXPIRES_MS),
    }));
    const over = rows.filter(({ lastSeenAt, seenBefore }) => lastSeenAt < seenBefore);
    return new Map(over.map(({ kind, seenBefore }) => [kind, seenBefore]));
  }

  /** Since when an alarm stands and who has acknowledged it is as its row says. */
  #adopt(rows: readonly AlarmRecord[]): void {
    this.#rows = new Map(rows.map((row) => [toKey(row), row]));
    for (const [key, seen] of this.#seen) {
      const row = this.#rows.get(key);
      // This server sees for itself that a cause goes on, but not that what happened once is over.
      const isEndedElsewhere = standsAfterMs.has(seen.alarm.kind) && seen.storedAt >= seen.raisedAt;
      if (row === undefined && isEndedElsewhere) this.#seen.delete(key);
      else if (row === undefined) seen.storedAt = Number.NEGATIVE_INFINITY;
      else seen.alarm = { ...seen.alarm, since: row.since, acknowledgedBy: row.acknowledgedBy };
    }
  }
}

function toKey({ kind, subject }: AlarmKey): string {
  return `${kind} ${subject}`;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
