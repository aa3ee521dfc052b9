import type { Requirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { isPolledRead } from '../transcript/exchange.ts';
import type { RunSettings, TranscriptRecord } from '../transcript/records.ts';
import type { Judged } from '../verdict/judge.ts';
import { type Counts, countVerdicts, exitCodeOf, leftovers, outcomeOf } from '../verdict/outcome.ts';
import { toReportCheck } from './checks.ts';
import { cut } from './excerpt.ts';
import { featuresIn } from './features.ts';
import { causesOf, toFindings } from './findings.ts';
import { SWEEP_COMMAND, toLeftovers, toReceipt, totalOf } from './receipt.ts';
import {
  type Report,
  type ReportCheck,
  type ReportSettings,
  type ReportTier,
  type ReportTiming,
  TIERS,
  type TierState,
} from './report.ts';
import { round, ShownRecords } from './shown.ts';
import { whyOf } from './why.ts';

const MAX_DETAIL_CHARACTERS = 2000;

/** The report of a run, from its transcript and verdicts. */
export function toReport(
  records: readonly TranscriptRecord[],
  judged: readonly Judged[],
  requirements: Pick<Requirements, 'contract' | 'digest'>,
  /** The version of the suite whose `judge` makes the report; absent for the report of a run. */
  judgedBy?: string,
): Report {
  const evidence = new Evidence(records);
  const { run, end, resources } = evidence;
  const counts = countVerdicts(judged);
  const outcome = outcomeOf(run, end, counts);
  const endedAtMs = end?.at ?? lastTimeOf(records);
  const shown = new ShownRecords(run);
  const causes = causesOf(judged, evidence.instances);
  const checks = judged.map((one) =>
    toReportCheck(one, evidence, shown, causes.get(one.requirement.id)?.text),
  );
  const receipt = toReceipt(records, endedAtMs);
  const { usd, unpriced } = totalOf(receipt);
  const left = toLeftovers(resources, evidence.sent, run.baseUrl);
  return {
    format: 1,
    outcome,
    why: whyOf(outcome, run, end, judged, counts),
    exit_code: exitCodeOf(outcome, end, leftovers(resources)),
    suite_version: run.suite,
    ...(judgedBy !== undefined && { judged_by: judgedBy }),
    requirements_digest: requirements.digest,
    ...(run.requirements !== requirements.digest && { run_requirements_digest: run.requirements }),
    ...(run.nonce !== undefined && { nonce: run.nonce }),
    ...toTlsKeys(evidence),
    contract_version: requirements.contract,
    run_id: run.runId,
    base_url: run.baseUrl,
    level: run.level,
    ...(run.only !== undefined && { only: [...run.only] }),
    started_at: run.startedAt,
    duration_ms: round(endedAtMs),
    ...(end !== undefined && { end: toEnd(end) }),
    settings: toSettings(run.settings),
    user_agent: run.userAgent,
    round_trips_ms: run.roundTripsMs.map(round),
    counts,
    tiers: toTiers(judged.map(({ requirement: { tier }, verdict }) => ({ tier, verdict }))),
    features: featuresIn(judged),
    findings: toFindings(judged, causes, evidence.instances),
    timings: toTimings(evidence),
    checks,
    exchanges: shown.exchanges,
    logins: shown.logins,
    resources: receipt,
    cost_usd: usd,
    unpriced_resources: unpriced,
    leftovers: left,
    ...(left.length !== 0 && { sweep_command: SWEEP_COMMAND }),
  };
}

/** The report as JSON text. */
export function toJson(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

function toTlsKeys({ sent }: Evidence): Pick<Report, 'tls_keys'> {
  const keys = new Set(sent.flatMap(({ tlsKey }) => tlsKey ?? []));
  return keys.size === 0 ? {} : { tls_keys: [...keys] };
}

function toEnd({ reason, detail }: NonNullable<Evidence['end']>): NonNullable<Report['end']> {
  return { reason, ...(detail !== undefined && { detail: cut(detail, MAX_DETAIL_CHARACTERS) }) };
}

function toSettings(settings: RunSettings): ReportSettings {
  const { offer, region, race } = settings;
  return {
    poll_interval_ms: settings.pollIntervalMs,
    ready_timeout_ms: settings.readyTimeoutMs,
    max_cost_usd: settings.maxCostUsd,
    max_minutes: settings.maxMinutes,
    ...(offer !== undefined && { offer }),
    ...(region !== undefined && { region }),
    ...(race !== undefined && { race: { offer: race.offer, units: race.units } }),
    has_second_key: settings.hasSecondKey,
    ...(settings.hasOtherAccountKey === true && { has_other_account_key: true }),
    ...(settings.plain === true && { plain: true }),
  };
}

/** The time of the last record of a run. */
function lastTimeOf(records: readonly TranscriptRecord[]): number {
  return records.reduce((last, record) => {
    if (record.kind === 'exchange' || record.kind === 'ssh') return Math.max(last, record.endedAt);
    return record.kind === 'resource' ? Math.max(last, record.at) : last;
  }, 0);
}

/** The state of each tier of the contract. */
export function toTiers(rows: readonly Pick<ReportCheck, 'tier' | 'verdict'>[]): ReportTier[] {
  return TIERS.map((tier) => {
    const counts = countVerdicts(rows.filter((row) => row.tier === tier));
    return { tier, state: stateOf(counts), counts };
  });
}

function stateOf({ fail, not_tested, pass, warn, not_applicable }: Counts): TierState {
  if (fail > 0) return 'non-conformant';
  if (not_tested > 0) return 'incomplete';
  if (pass + warn > 0) return 'conformant';
  return not_applicable > 0 ? 'absent' : 'not looked at';
}

const WAITS = {
  'to ONLINE': 'boot/poll',
  'to STOPPED': 'stop/poll',
  'to ONLINE again': 'start/poll',
  'to 404': 'destroy/poll',
} as const;

/** How long the target took, for comparisons between runs. */
function toTimings(evidence: Evidence): ReportTiming[] {
  const waits = Object.entries(WAITS).flatMap(([what, step]) => {
    const reads = evidence.anySteps(step);
    const [first, last] = [reads[0], reads.at(-1)];
    return first === undefined || last === undefined
      ? []
      : [{ what, ms: round(last.endedAt - first.sentAt) }];
  });
  const polls = evidence.exchanges.filter(isPolledRead);
  const sorted = polls.map(({ answer }) => answer?.firstByteMs ?? 0).toSorted((a, b) => a - b);
  const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1];
  return p95 === undefined ? waits : [...waits, { what: '95th percentile of a polled read', ms: round(p95) }];
}
