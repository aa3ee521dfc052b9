import type { EndRecord, Level, RunSettings } from '../transcript/records.ts';
import type { Verdict } from '../verdict/judge.ts';
import type { Counts, Outcome } from '../verdict/outcome.ts';

/**
 * The report of a run as written to `--json`; schema.json describes it. All other formats are derived from it. Fields
 * `at_ms`, `from_ms` and `to_ms` count from the start of the run.
 */
export interface Report {
  format: 1;
  outcome: Outcome;
  /** The reason for the outcome, in one sentence. */
  why: string;
  exit_code: number;
  /** The version of the suite that made the run. */
  suite_version: string;
  /** The version of the suite whose `judge` made the report from a transcript; absent if the run itself did. */
  judged_by?: string;
  /** SHA-256 of the requirements.yaml by which it was judged. */
  requirements_digest: string;
  /** The digest at the time of the run, if it differs. */
  run_requirements_digest?: string;
  /** The text given with `--nonce`. */
  nonce?: string;
  /** SHA-256 of each public key that the target showed in TLS (SubjectPublicKeyInfo, DER), hex. */
  tls_keys?: string[];
  contract_version: string;
  run_id: string;
  base_url: string;
  level: Level;
  only?: string[];
  started_at: string;
  duration_ms: number;
  /** Absent if the transcript ends in the middle of the run. */
  end?: { reason: EndRecord['reason']; detail?: string };
  settings: ReportSettings;
  user_agent: string;
  round_trips_ms: number[];
  counts: Counts;
  tiers: ReportTier[];
  /** The same features in each report, to compare providers by. Older reports do not have it. */
  features?: { feature: string; state: FeatureState }[];
  /** The failures by cause, in the order in which to fix them. */
  findings: ReportFinding[];
  /** How long the target took for operations that a client waits for. */
  timings: ReportTiming[];
  checks: ReportCheck[];
  /** The exchanges that checks refer to. */
  exchanges: ReportExchange[];
  logins: ReportLogin[];
  resources: ReportResource[];
  /** Estimated cost of the resources, by the price of their offer. */
  cost_usd: number;
  /** How many of the resources have no price, and so are not in `cost_usd`. */
  unpriced_resources: number;
  /** Resources that may still exist and be billed. */
  leftovers: ReportLeftover[];
  /** The command that destroys all of them, if there are any. */
  sweep_command?: string;
  /** Present if the report is signed. */
  signature?: ReportSignature;
}

export interface ReportTiming {
  /** E.g. `to ONLINE`. */
  what: string;
  ms: number;
}

/** docs/certification.md describes what is signed. */
export interface ReportSignature {
  algorithm: 'Ed25519';
  /** The 32 bytes of the key, in base64. */
  public_key: string;
  /** SHA-256 of the file that `--transcript` wrote, hex. */
  transcript_sha256: string;
  /** In base64. */
  value: string;
}

export interface ReportSettings {
  poll_interval_ms: number;
  ready_timeout_ms: number;
  max_cost_usd: number;
  max_minutes: number;
  offer?: string;
  region?: string;
  race?: NonNullable<RunSettings['race']>;
  has_second_key: boolean;
  has_other_account_key?: true;
  /** The requests looked like an ordinary client's, and what no client sends was left out. */
  plain?: true;
}

export const TIERS = ['compute', 'storage', 'token'] as const;
export type Tier = (typeof TIERS)[number];

/** `absent`: the target does not offer the tier. `not looked at`: the run did not test it. */
export type TierState = 'conformant' | 'non-conformant' | 'incomplete' | 'absent' | 'not looked at';

/** `not asked`: the run was not told to test it, or its level does not. */
export type FeatureState = 'supported' | 'failed' | 'not supported' | 'not tested' | 'not asked';

export interface ReportTier {
  tier: Tier;
  state: TierState;
  counts: Counts;
}

/** One cause of failures. */
export interface ReportFinding {
  /** The fault in plain words. */
  title: string;
  /** The requirements that fail because of it. */
  checks: string[];
  /** The number of places where it was seen. */
  places: number;
  /** One request that shows it. */
  first?: string;
}

/** A requirement and its verdict. */
export interface ReportCheck {
  id: string;
  level: 'MUST' | 'SHOULD';
  tier: Tier;
  verdict: Verdict;
  /** One sentence. */
  reason: string;
  /** The section of the contract that holds the sentence. */
  place: string;
  /** The sentence. */
  text: string;
  /** The requirement in plain words. */
  means?: string;
  /** For `not_applicable` and `not_asked`: the capability that the target, or the run, does not have. */
  capability?: string;
  /** For `fail` and `warn`, like all fields up to `traces`: the first few problems. */
  problems?: ReportProblem[];
  /** How many more problems there were. */
  more_problems?: number;
  seen?: { wrong: number; of: number };
  /** The usual cause, and where to look for it. */
  cause?: string;
  /** The instances that the problems are about. */
  traces?: ReportTrace[];
  /** For `pass`: the records that prove it. */
  proof?: Reference[];
}

/** One of `exchanges` or of `logins`, by its `n`. */
export type Reference = { exchange: number } | { login: number };

export interface ReportProblem {
  expected: string;
  actual: string;
  at_ms?: number;
  /** The wall clock then, RFC 3339. */
  at?: string;
  shown?: Reference;
}

/** Truncated text. */
export interface Excerpt {
  text: string;
  /** Number of characters left out. */
  more: number;
}

export interface ReportExchange {
  n: number;
  step: string;
  at_ms: number;
  at: string;
  took_ms: number;
  first_byte_ms?: number;
  credential: string;
  request_id: string;
  user_agent: string;
  method: string;
  path: string;
  /** Absent if there was no answer. */
  status?: number;
  failure?: { kind: string; message: string };
  request_headers: Record<string, string>;
  request_body?: Excerpt;
  answer_headers?: Record<string, string>;
  answer_body?: Excerpt;
  /**
   * A command that repeats the request, with the key in `$BERTH_API_KEY`. Absent if the request is too long for a
   * command.
   */
  curl?: string;
}

export interface ReportLogin {
  n: number;
  step: string;
  at_ms: number;
  at: string;
  took_ms: number;
  instance_id: string;
  key: string;
  host: string;
  port: number;
  username: string;
  command: string;
  /** The stage that the login reached. */
  rung: string;
  message?: string;
  host_key?: string;
  exit_code?: number;
  stdout?: Excerpt;
}

/** The observations of an instance, in order. Consecutive reads with the same result are one row. */
export interface ReportTrace {
  instance_id: string;
  name: string;
  /** Number of rows left out before and after. */
  earlier: number;
  later: number;
  rows: TraceRow[];
}

export interface TraceRow {
  from_ms: number;
  to_ms: number;
  at: string;
  status: string;
  by: TraceSource[];
  times: number;
  /** A problem of the check refers to this row. */
  is_problem?: true;
}

export type TraceSource = 'read' | 'list' | 'create' | 'start' | 'stop' | 'delete';

export interface ReportResource {
  entry: number;
  type: 'instance' | 'volume';
  name: string;
  id?: string;
  step: string;
  state: 'made' | 'refused' | 'unknown' | 'gone';
  price_per_hour_usd?: number;
  asked_at_ms: number;
  /** Until the resource was confirmed gone, or until the end of the run. Absent if the create was refused. */
  lifetime_ms?: number;
  estimated_usd?: number;
  note?: string;
}

export interface ReportLeftover {
  entry: number;
  type: 'instance' | 'volume';
  name: string;
  id?: string;
  price_per_hour_usd?: number;
  /** Why its end could not be confirmed. */
  note?: string;
  /** Instructions for removing it. */
  how: string;
  /** The command for it; absent if the contract has none. */
  command?: string;
}
