/** `critical`: someone must act now · `warning`: someone must act in the next days. The worst first. */
export const severities = ['critical', 'warning'] as const;
export type Severity = (typeof severities)[number];

/** What is known of a kind of alarm. */
export interface AlarmKindFacts {
  severity: Severity;
  /** The section of docs/runbook.md. */
  runbook: string;
  /**
   * The kind reports a single event, and stays open for this time after it, even if servers stop meanwhile. Without it,
   * the alarm stays open while a server sees its cause.
   */
  openForMs?: number;
}
export type AlarmKinds<Kind extends string = string> = Readonly<Record<Kind, AlarmKindFacts>>;

export interface AlarmKey<Kind extends string = string> {
  kind: Kind;
  subject: string;
}

/** One open alarm. Times are milliseconds since the Unix epoch. */
export interface AlarmRecord extends AlarmKey {
  /** The platform, or the provider of a marketplace. Null if the alarm does not concern one. */
  platform: string | null;
  /** The problem and its remedy, for the operator. */
  text: string;
  since: number;
  /** When a server last saw it. An alarm that no server sees any more ends some minutes later. */
  lastSeenAt: number;
  /** The operator who acknowledged it. Null if it is not acknowledged. */
  acknowledgedBy: string | null;
  /** The operator's note. Null if there is none. */
  note: string | null;
}

/** An alarm that ended. */
export interface EndedAlarm extends Omit<AlarmRecord, 'lastSeenAt'> {
  id: number;
  until: number;
}

/** Selects the alarms of a list. Without a field: any. */
export interface AlarmFilter {
  kind?: string | undefined;
  subject?: string | undefined;
  platform?: string | undefined;
}

export interface AlarmReader {
  /** Lists the open alarms, oldest first. */
  list(): Promise<AlarmRecord[]>;
  /**
   * Lists the alarms that ended or began between `from` and `to`, by that time, newest first. Both times are included.
   */
  ended(
    of: AlarmFilter & { by: 'since' | 'until'; from: number; to: number; limit: number },
  ): Promise<EndedAlarm[]>;
}
export interface AlarmWriter extends AlarmReader {
  /**
   * Inserts the alarm. If it is already open, only its text and `lastSeenAt` change. If it ended with the same start, it
   * had not ended.
   */
  put(alarm: AlarmRecord): Promise<void>;
  /** Ends the alarm: it leaves the open ones for those that ended. */
  end(alarm: AlarmKey, at: number): Promise<void>;
  /** Acknowledges the alarm of `subject`, or all alarms of the kind. Returns the alarms that it acknowledged. */
  acknowledge(
    of: { kind: string; subject?: string | undefined },
    by: string,
    note: string | null,
  ): Promise<AlarmRecord[]>;
  /** Ends the alarms of those kinds that were last seen before `time`. */
  endSeenBefore(time: number, kinds: readonly string[], at: number): Promise<void>;
  /** Deletes those of the oldest `limit` ended alarms that ended before `before`. Returns the number. */
  pruneOldest(before: number, limit: number): Promise<number>;
}

/** What one route was told about one alarm, and what it is to be told next. */
export interface AlarmNotice extends AlarmKey, Pick<AlarmRecord, 'platform' | 'text' | 'since'> {
  route: string;
  /** When the alarm ended. Null while it is open. */
  until: number | null;
  /** The last message that the route accepted. */
  told: 'nothing' | 'began' | 'ended';
  /** When a message is due. Null if there is nothing to tell, or the route was tried too often. */
  dueAt: number | null;
  /** Attempts since a message was last accepted. */
  attempts: number;
  lastError: string | null;
}
export type NoticeKey = Pick<AlarmNotice, 'route' | 'kind' | 'subject' | 'since'>;

/** A message is due if its time is up to `now`, or after `latest`. */
export interface DueTimes {
  now: number;
  latest: number;
}

export interface NoticeReader {
  /** The notices of alarms that were open at the last look. */
  open(): Promise<AlarmNotice[]>;
  /** The routes with a due message. */
  dueRoutes(at: DueTimes): Promise<string[]>;
}
export interface NoticeWriter extends NoticeReader {
  /**
   * Adds a notice. An existing one changes only if its alarm had ended: it is open again. If its end was not told yet,
   * there is nothing to tell.
   */
  add(notice: AlarmNotice): Promise<void>;
  end(of: NoticeKey, at: { until: number; dueAt: number }): Promise<void>;
  /**
   * Claims the messages of a route that are due, those not tried yet, and those that were given up, in one statement.
   * Another server can claim them after `claimedUntil`.
   */
  claim(of: DueTimes & { route: string; claimedUntil: number }): Promise<AlarmNotice[]>;
  /** Stores the outcome of a claimed message. `dueAt` is kept if the alarm has ended meanwhile. */
  settle(
    of: AlarmNotice,
    outcome: Pick<AlarmNotice, 'told' | 'dueAt' | 'attempts' | 'lastError'>,
  ): Promise<void>;
  /** Deletes the notices of alarms that ended before `time`. */
  deleteEndedBefore(time: number): Promise<void>;
}
