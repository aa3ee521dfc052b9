/** The permitted actions of a run: only reads, one cheapest instance, or everything. */
export const LEVELS = ['read-only', 'lifecycle', 'full'] as const;
export type Level = (typeof LEVELS)[number];

/** Whether a run of `level` does everything that `needed` requires. */
export function includes(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed);
}

/**
 * A transcript has one JSON record per line: first a `run`, then all actions and observations in the order in which
 * they ended, last an `end` (absent after a crash). Verdicts depend only on these records.
 */
export type TranscriptRecord =
  | RunRecord
  | Exchange
  | SshRecord
  | RestartRecord
  | Skipped
  | ResourceRecord
  | EndRecord;

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
  /** From which the run drew names, order and moments (`Draws`). Transcripts of earlier versions have none. */
  seed?: string;
  /** The text given with `--nonce`. */
  nonce?: string;
  /** Each line of the file has a link of the hash chain (`Chain`). Transcripts of earlier versions have none. */
  isChained?: true;
  /** The check ids of `--only`; absent if all checks of the level run. */
  only?: readonly string[];
  /** RFC 3339. */
  startedAt: string;
  /** Empty: the run sent none. */
  userAgent: string;
  settings: RunSettings;
  /** Milliseconds of TCP connections to the target, measured before the first request; empty if unknown. */
  roundTripsMs: readonly number[];
}

export interface RunSettings {
  pollIntervalMs: number;
  readyTimeoutMs: number;
  maxCostUsd: number;
  maxMinutes: number;
  offer?: string;
  region?: string;
  /** `--race OFFER=UNITS`: the number of units of an offer, according to the provider. */
  race?: { offer: string; units: number };
  hasSecondKey: boolean;
  /** Whether a key of another account was given. */
  hasOtherAccountKey?: true;
  /** `--observe-s`: how long an instance is observed while it is ONLINE. */
  observeMs?: number;
  /** `--exhaustive`: also sends bad creates of a kind that was accepted. */
  exhaustive?: boolean;
  /** `--restart-command`: the run restarts the target. */
  restarts?: true;
  /** `--allow-private`: logins may use private addresses even if the base URL is public. */
  allowPrivate?: boolean;
  /** `--plain`: the requests look like those of an ordinary client, and what no client sends is left out. */
  plain?: true;
  /** `--installation`: eight hex digits in the names of a plain run, as in those of a marketplace; drawn if not given. */
  installation?: string;
}

/** The settings that the command line has, apart from keys. */
export type ChosenSettings = Omit<RunSettings, 'hasSecondKey' | 'hasOtherAccountKey'>;

/** The credential of a request. */
export type Credential =
  | 'api key'
  | 'second api key'
  | 'other account key'
  | 'access token'
  | 'none'
  | 'altered';

/** One request and its outcome. Times are milliseconds since the start of the run. */
export interface Exchange {
  kind: 'exchange';
  n: number;
  /** The purpose: `<scenario>/<what>`. */
  step: string;
  sentAt: number;
  endedAt: number;
  /** Wall clock at sending, RFC 3339. */
  wall: string;
  /** The `X-Request-Id` of the request; empty if it had none. */
  requestId: string;
  /** SHA-256 of the public key that the target showed in TLS (SubjectPublicKeyInfo, DER), hex. */
  tlsKey?: string;
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
     * Number of instances of a long list that are not in `body` (those of the run always are), or of characters of
     * another long answer.
     */
    leftOut?: number;
  };
  failure?: { kind: FailureKind; message: string };
  /** The request was retried, after a 429 or a lost connection. */
  superseded?: true;
}

/**
 * The key pair used for a login: one of those injected into the instance, one that was never injected, or `foreign`:
 * one that was injected into another instance of the run.
 */
export type KeyName = 'first' | 'second' | 'third' | 'other' | 'foreign';

/** One SSH login and the stage that it reached. */
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

/** The operator's command that restarts the target. The command itself is not recorded. */
export interface RestartRecord {
  kind: 'restart';
  sentAt: number;
  endedAt: number;
  /** Absent if the command did not end by itself. */
  exitCode?: number;
  /** Why it did not, e.g. `was ended by SIGTERM`. */
  message?: string;
  /** The last lines that it printed. */
  output: string;
}

/**
 * Steps that were skipped, and why. With a capability: the target does not have it. Without: the run could not do them.
 */
export interface Skipped {
  kind: 'skipped';
  /** Prefixes of step names. */
  steps: readonly string[];
  reason: string;
  /** The optional capability that the target does not have, e.g. `volumes`. */
  capability?: string;
}

/** The state of a resource of the run, written again whenever it changes. */
export interface ResourceRecord {
  kind: 'resource';
  /** Number of the ledger entry. */
  entry: number;
  type: 'instance' | 'volume';
  name: string;
  id?: string;
  /** The step that requested it. */
  step: string;
  state: 'made' | 'refused' | 'unknown' | 'gone';
  at: number;
  pricePerHour?: number;
  note?: string;
}

export interface EndRecord {
  kind: 'end';
  at: number;
  reason:
    | 'completed'
    | 'interrupted'
    | 'out of time'
    | 'target lost'
    | 'kept'
    | 'fault of the suite'
    | 'ledger not written';
  detail?: string;
}

/** How an exchange can fail without a complete answer. */
export type FailureKind =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'timeout'
  | 'too_large'
  | 'not_http'
  | 'interrupted';

/** The stages of a login, in order. */
export type SshRung = 'resolve' | 'connect' | 'handshake' | 'authenticate' | 'execute' | 'done';
