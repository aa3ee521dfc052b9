/** What a run may do: look only, buy one cheapest instance, or everything. */
export const LEVELS = ['read-only', 'lifecycle', 'full'] as const;
export type Level = (typeof LEVELS)[number];

/** Whether a run of `level` does what `needed` asks for. */
export function includes(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed);
}

/**
 * A transcript is one JSON record a line: a `run` first, then what was done and seen in the order in which it ended,
 * and `end` last (absent after a crash). Verdicts are a function of these records and of nothing else.
 */
export type TranscriptRecord = RunRecord | Exchange | SshRecord | Skipped | ResourceRecord | EndRecord;

export interface RunRecord {
  kind: 'run';
  /** The version of the records. */
  format: 1;
  suite: string;
  /** SHA-256 of requirements.yaml, hex. */
  requirements: string;
  runId: string;
  baseUrl: string;
  level: Level;
  /** Ids of `--only`; absent when all of the level are selected. */
  only?: readonly string[];
  /** RFC 3339. */
  startedAt: string;
  userAgent: string;
  settings: RunSettings;
  /** Milliseconds of TCP connections to the target, measured before the first request; empty where unknown. */
  roundTripsMs: readonly number[];
}

export interface RunSettings {
  pollIntervalMs: number;
  readyTimeoutMs: number;
  maxCostUsd: number;
  maxMinutes: number;
  offer?: string;
  region?: string;
  /** `--race OFFER=UNITS`: how many units of an offer the provider says there are. */
  race?: { offer: string; units: number };
  hasSecondKey: boolean;
  /** `--allow-private`: logins may lead to private addresses though the base URL is public. */
  allowPrivate?: boolean;
}

/** Which credential a request carried. */
export type Credential = 'api key' | 'second api key' | 'access token' | 'none' | 'altered';

/** One request and what came of it. Times are milliseconds since the run's start. */
export interface Exchange {
  kind: 'exchange';
  n: number;
  /** What it was for: `<scenario>/<what>`. */
  step: string;
  sentAt: number;
  endedAt: number;
  /** Wall clock at sending, RFC 3339. */
  wall: string;
  /** The `X-Request-Id` that it carried. */
  requestId: string;
  credential: Credential;
  request: {
    method: string;
    /** Below the base URL, with its query. */
    path: string;
    headers: Readonly<Record<string, string>>;
    body?: string;
  };
  answer?: {
    status: number;
    headers: Readonly<Record<string, string>>;
    body: string;
    firstByteMs: number;
    /**
     * Of a list of thousands of instances, how many are not in `body`: those of the run are. Of a long answer that is no
     * such list, how many characters are not.
     */
    leftOut?: number;
  };
  failure?: { kind: FailureKind; message: string };
  /** It was sent again: it had been answered with 429, or had been lost. */
  superseded?: true;
}

/** Which of the run's keys was used to log in: the two that were injected, or one that never was. */
export type KeyName = 'first' | 'second' | 'other';

/** One SSH login and how far it came. */
export interface SshRecord {
  kind: 'ssh';
  n: number;
  step: string;
  sentAt: number;
  endedAt: number;
  instanceId: string;
  key: KeyName;
  host: string;
  port: number;
  username: string;
  command: string;
  rung: SshRung;
  message?: string;
  hostKey?: string;
  exitCode?: number;
  stdout?: string;
}

/** Steps that were not taken, and why. With a capability, the target lacks it; without, the run could not. */
export interface Skipped {
  kind: 'skipped';
  /** Beginnings of step names. */
  steps: readonly string[];
  reason: string;
  /** The optional capability that the target lacks, e.g. `volumes`. */
  capability?: string;
}

/** What became of something that the run made. Written when it is known, and again when that changes. */
export interface ResourceRecord {
  kind: 'resource';
  /** Of the ledger. */
  entry: number;
  type: 'instance' | 'volume';
  name: string;
  id?: string;
  /** The step that asked for it. */
  step: string;
  state: 'made' | 'refused' | 'unknown' | 'gone';
  at: number;
  pricePerHour?: number;
  note?: string;
}

export interface EndRecord {
  kind: 'end';
  at: number;
  reason: 'completed' | 'interrupted' | 'out of time' | 'fault of the suite' | 'ledger not written';
  detail?: string;
}

/** How an exchange can end without a whole answer. */
export type FailureKind =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'timeout'
  | 'too_large'
  | 'not_http'
  | 'interrupted';

/** How far a login came: the rungs of the ladder, lowest first. */
export type SshRung = 'resolve' | 'connect' | 'handshake' | 'authenticate' | 'execute' | 'done';
