/**
 * Problems, each open until its cause is gone. The subject of each kind:
 * `platform_down`, `platform_suspect`, `volumes_suspect`, `inventory_unknown`, `listing_incomplete`: a platform · `losses_held`: a platform, or
 * PLATFORM/HOST · `host_unknown`: PLATFORM/HOST · `orphan_machine`, `orphan_volume`, `row_lost`: an owner ref, or
 * the platform for those beyond a hundred · `step_failing`, `call_stuck`: an instance or a volume ·
 * `start_failed`, `machine_paused`, `machine_fault`, `disk_lost`: an instance · `resource_renamed`: an instance or a volume · `resource_copied`: a name on the
 * platform · `disk_left`: an owner ref · `endpoint_shared`: ADDRESS:PORT ·
 * `clock_skew`, `reload_refused`, `disk_low`: a server · `certificate_ending`: a server, or PLATFORM/USE · `store_unwritable`: the database.
 */
export const alarmKinds = [
  'platform_down',
  'platform_suspect',
  'volumes_suspect',
  'inventory_unknown',
  'host_unknown',
  'losses_held',
  'orphan_machine',
  'orphan_volume',
  'row_lost',
  'listing_incomplete',
  'step_failing',
  'call_stuck',
  'start_failed',
  'machine_paused',
  'machine_fault',
  'resource_renamed',
  'resource_copied',
  'disk_left',
  'endpoint_shared',
  'disk_lost',
  'clock_skew',
  'certificate_ending',
  'reload_refused',
  'disk_low',
  'store_unwritable',
] as const;
export type AlarmKind = (typeof alarmKinds)[number];

const DAY_MS = 24 * 60 * 60_000;
/**
 * Those about what happened once, and how long they stand after that, whichever servers end meanwhile. All others stand
 * while a server sees them.
 */
export const standsAfterMs: ReadonlyMap<AlarmKind, number> = new Map([
  ['start_failed', DAY_MS],
  ['disk_lost', DAY_MS],
]);

export interface AlarmKey {
  kind: AlarmKind;
  subject: string;
}

/** One row of the alarms: it is there while the alarm stands. Times are milliseconds since the Unix epoch. */
export interface AlarmRecord extends AlarmKey {
  /** Null: it is of no platform. */
  platform: string | null;
  /** What is wrong and what to do, for the operator. */
  text: string;
  since: number;
  /** When a server saw it last; one that no server sees any more ends some minutes later. */
  lastSeenAt: number;
  /** Who has taken it on; null: nobody has. */
  acknowledgedBy: string | null;
}

export interface AlarmReader {
  /** The oldest first. */
  list(): Promise<AlarmRecord[]>;
}
export interface AlarmWriter extends AlarmReader {
  /** Inserts it. Where it stands already, only its text and when it was seen change. */
  put(alarm: AlarmRecord): Promise<void>;
  remove(alarm: AlarmKey): Promise<void>;
  /** Of a kind, the one of the subject, or all; returns those that it acknowledged. */
  acknowledge(of: { kind: AlarmKind; subject?: string }, by: string): Promise<AlarmRecord[]>;
  /** Of those kinds. */
  removeSeenBefore(time: number, kinds: readonly AlarmKind[]): Promise<void>;
}
