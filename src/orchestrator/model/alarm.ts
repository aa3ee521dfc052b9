/**
 * The kinds of alarms. An alarm is open until its cause is gone. The subject of each kind:
 * - a platform: `platform_down`, `platform_suspect`, `platform_taken`, `platform_unmarked`, `volumes_suspect`,
 *   `inventory_unknown`, `listing_incomplete`
 * - PLATFORM/HOST: `host_unknown`; a platform or PLATFORM/HOST: `losses_held`; PLATFORM/HOST or PLATFORM/OFFER:
 *   `creates_refused`
 * - an owner ref: `orphan_machine`, `orphan_volume`, `row_lost`, `leftover`
 * - an instance or a volume: `step_failing`, `phase_overdue`, `call_stuck`, `resource_renamed`
 * - an instance: `start_failed`, `machine_paused`, `machine_fault`, `machine_gone`, `disk_lost`
 * - a name on the platform: `resource_copied`; ADDRESS:PORT: `endpoint_shared`
 * - a server: `clock_skew`, `reload_refused`, `disk_low`, `backup_failed`; a server or PLATFORM/USE: `certificate_ending`
 * - the database: `store_unwritable`
 * The kinds of `raiseFolded` and `raiseOne` also have one alarm with the platform as subject, for more than a hundred resources.
 */
export const alarmKinds = [
  'platform_down',
  'platform_suspect',
  'platform_taken',
  'platform_unmarked',
  'volumes_suspect',
  'inventory_unknown',
  'host_unknown',
  'losses_held',
  'creates_refused',
  'orphan_machine',
  'orphan_volume',
  'row_lost',
  'listing_incomplete',
  'step_failing',
  'phase_overdue',
  'call_stuck',
  'start_failed',
  'machine_paused',
  'machine_fault',
  'machine_gone',
  'resource_renamed',
  'resource_copied',
  'leftover',
  'endpoint_shared',
  'disk_lost',
  'clock_skew',
  'certificate_ending',
  'reload_refused',
  'disk_low',
  'store_unwritable',
  'backup_failed',
] as const;
export type AlarmKind = (typeof alarmKinds)[number];

const DAY_MS = 24 * 60 * 60_000;
/**
 * The kinds that report a single event, and how long they stay open after it, even if servers stop meanwhile. An alarm
 * of any other kind stays open while a server sees its cause.
 */
export const openForMs: ReadonlyMap<AlarmKind, number> = new Map([
  ['start_failed', DAY_MS],
  ['machine_gone', DAY_MS],
  ['disk_lost', DAY_MS],
]);

export interface AlarmKey {
  kind: AlarmKind;
  subject: string;
}

/** One open alarm. Times are milliseconds since the Unix epoch. */
export interface AlarmRecord extends AlarmKey {
  /** Null if the alarm does not concern a platform. */
  platform: string | null;
  /** The problem and its remedy, for the operator. */
  text: string;
  since: number;
  /** When a server last saw it. An alarm that no server sees any more is removed some minutes later. */
  lastSeenAt: number;
  /** The operator who acknowledged it. Null if it is not acknowledged. */
  acknowledgedBy: string | null;
}

export interface AlarmReader {
  /** Lists the open alarms, oldest first. */
  list(): Promise<AlarmRecord[]>;
}
export interface AlarmWriter extends AlarmReader {
  /** Inserts the alarm. If it is already open, only its text and `lastSeenAt` change. */
  put(alarm: AlarmRecord): Promise<void>;
  remove(alarm: AlarmKey): Promise<void>;
  /** Acknowledges the alarm of `subject`, or all alarms of the kind. Returns the alarms that it acknowledged. */
  acknowledge(of: { kind: AlarmKind; subject?: string }, by: string): Promise<AlarmRecord[]>;
  /** Removes alarms of those kinds that were last seen before `time`. */
  removeSeenBefore(time: number, kinds: readonly AlarmKind[]): Promise<void>;
}
