import type { Clock } from '../../ports/clock.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { AlarmKey, AlarmKinds, AlarmReader, AlarmRecord, AlarmWriter } from './model.ts';

/** How often the row of an open alarm is written again, in milliseconds. */
const REFRESH_MS = 60_000;
/** A row that no server has written for this long, in milliseconds, is from a stopped server and is removed. */
const EXPIRES_MS = 10 * 60_000;
/** Rows per transaction. */
const BATCH = 100;

/** An alarm to be raised. */
export interface Raised<Kind extends string = string> extends AlarmKey<Kind> {
  platform: string | null;
  text: string;
  /** Details, added after the text of the row. */
  detail?: string;
  /** Fields of the log line. */
  fields?: object;
  /**
   * The alarm ends unless it is raised again within this time, in milliseconds. By default it stays open for the time
   * of its kind, or until `end`.
   */
  forMs?: number;
}

interface OpenAlarm {
  alarm: AlarmRecord;
  raisedAt: number;
  forMs: number;
  storedAt: number;
  storedText: string;
}

/** A store with alarms. */
export interface AlarmStore<Tx = { alarms: AlarmWriter }> {
  read: { alarms: AlarmReader };
  transact<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
}

export interface AlarmDeps<Kind extends string> {
  store: AlarmStore;
  kinds: AlarmKinds<Kind>;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'warn' | 'error'>;
  /** The name of this server among those on the same database. */
  server: string;
}

/**
 * The open alarms. An alarm that this process raises is logged once and stored, so every server, the metrics and the
 * commands show it. When a process ends it, its row moves to those that ended. While the store does not answer, alarms stay in memory
 * and are stored later.
 */
export class Alarms<Kind extends string = string> {
  /** The resources without an alarm of their own that are in the log, by kind and platform: see `raiseFolded`. */
  readonly namesInLog = new Map<string, ReadonlySet<string>>();
  readonly #deps: AlarmDeps<Kind>;
  readonly #openForMs: ReadonlyMap<string, number>;
  readonly #startedAt: number;
  /** Alarms raised by this process. */
  readonly #seen = new Map<string, OpenAlarm>();
  /** Ended alarms whose row is not removed yet. */
  readonly #over = new Map<string, AlarmKey>();
  /** The rows of all processes at the last read. */
  #rows: ReadonlyMap<string, AlarmRecord> = new Map();
  #last: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: AlarmDeps<Kind>) {
    this.#deps = deps;
    this.#openForMs = new Map(
      Object.entries<AlarmKinds[string]>(deps.kinds).flatMap(([kind, { openForMs }]) =>
        openForMs === undefined ? [] : [[kind, openForMs] as const],
      ),
    );
    this.#startedAt = deps.clock.now();
  }

  get server(): string {
    return this.#deps.server;
  }

  /** Raises an alarm. Logs it to `log`, unless this process raised it before and has not ended it. */
  raise(
    { kind, subject, platform, text, detail, fields = {}, forMs }: Raised<Kind>,
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
      note: row?.note ?? seen?.alarm.note ?? null,
    };
    const { storedAt = Number.NEGATIVE_INFINITY, storedText = '' } = seen ?? {};
    const staysOpenMs = forMs ?? this.#openForMs.get(kind) ?? Number.POSITIVE_INFINITY;
    this.#seen.set(key, { alarm, raisedAt: now, forMs: staysOpenMs, storedAt, storedText });
    this.#over.delete(key);
    if (seen !== undefined) return;
    log.error(fields, text);
    void this.sync();
  }

  /** Ends an alarm whose cause this process knows to be gone. */
  end(alarm: AlarmKey<Kind>): void {
    const key = toKey(alarm);
    const wasSeen = this.#seen.delete(key);
    if (!wasSeen && !this.#rows.has(key)) return;
    this.#over.set(key, alarm);
    void this.sync();
  }

  /** This process no longer sees whether the cause lasts, but another does: that one ends the alarm, or its time does. */
  forget(alarm: AlarmKey<Kind>): void {
    this.#seen.delete(toKey(alarm));
  }

  /** Ends the alarms of a kind on a platform whose subject is not in `subjects`. */
  endOthers(kind: Kind, platform: string, subjects: ReadonlySet<string>): void {
    for (const alarm of this.listOpen())
      if (alarm.kind === kind && alarm.platform === platform && !subjects.has(alarm.subject))
        this.end({ kind, subject: alarm.subject });
  }

  /** The open alarms of all servers, as read some seconds ago, with the later changes of this process. */
  listOpen(): AlarmRecord[] {
    const all = new Map([...this.#rows].filter(([key]) => !this.#over.has(key)));
    for (const [key, { alarm }] of this.#seen) all.set(key, { ...all.get(key), ...alarm });
    return [...all.values()];
  }

  /** Stores changes and reads the rows. Never rejects: a failed write is repeated next time. */
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
        log.warn({ err: error }, 'the alarms could not be stored; retrying in a few seconds');
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
    // The row of a single event is written again only if the event recurs.
    const isDue = ({ alarm, raisedAt, storedAt, storedText }: OpenAlarm): boolean =>
      alarm.text !== storedText ||
      (this.#openForMs.has(alarm.kind) ? storedAt < raisedAt : Math.abs(now - storedAt) >= REFRESH_MS);
    // Alarms are written in order, so that two servers never deadlock.
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
        for (const [, alarm] of batch) await tx.alarms.end(alarm, now);
      });
      for (const [key, alarm] of batch) if (this.#over.get(key) === alarm) this.#over.delete(key);
    }
    for (const [kind, seenBefore] of expired)
      await store.transact((tx) => tx.alarms.endSeenBefore(seenBefore, [kind], now));
  }

  /**
   * The kinds with expired rows, and the time before which a row of each has expired. Empty until this process has had
   * time to see the causes that an earlier one saw.
   */
  #expired(now: number): Map<string, number> {
    if (now - this.#startedAt < EXPIRES_MS) return new Map();
    const rows = [...this.#rows.values()].map(({ kind, lastSeenAt }) => ({
      kind,
      lastSeenAt,
      seenBefore: now - (this.#openForMs.get(kind) ?? EXPIRES_MS),
    }));
    const over = rows.filter(({ lastSeenAt, seenBefore }) => lastSeenAt < seenBefore);
    return new Map(over.map(({ kind, seenBefore }) => [kind, seenBefore]));
  }

  /** Replaces the start and the acknowledgement of this process's alarms with those of their rows. */
  #adopt(rows: readonly AlarmRecord[]): void {
    this.#rows = new Map(rows.map((row) => [toKey(row), row]));
    for (const [key, seen] of this.#seen) {
      const row = this.#rows.get(key);
      // This server sees whether a cause lasts, but not whether another server ended the alarm of a single event.
      const isEndedElsewhere = this.#openForMs.has(seen.alarm.kind) && seen.storedAt >= seen.raisedAt;
      if (row === undefined && isEndedElsewhere) this.#seen.delete(key);
      else if (row === undefined) seen.storedAt = Number.NEGATIVE_INFINITY;
      else {
        const { since, acknowledgedBy, note } = row;
        seen.alarm = { ...seen.alarm, since, acknowledgedBy, note };
      }
    }
  }
}

function toKey({ kind, subject }: AlarmKey): string {
  return `${kind} ${subject}`;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
