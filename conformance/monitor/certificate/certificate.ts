import { digestOf } from '../../certificate/digest.ts';
import { suiteVersion } from '../../contract/package.ts';
import { loadRequirements, type Requirement } from '../../contract/requirements.ts';
import type { MonitorConfig, ProviderConfig } from '../config.ts';
import { MONITOR_REQUIREMENTS } from '../probe/checks.ts';
import type { Fault, StoredProbe, Tally } from '../records.ts';
import { type Rule, ruleInWords } from '../rules.ts';
import { MS_PER_DAY } from '../spending.ts';
import { firedBy, percentilesOf } from './evaluate.ts';

const MOST_FAULTS = 50;
const MS_PER_HOUR = 3_600_000;
/** A running monitor leaves a gap of so many mean gaps between two probes once in 22,000. */
const MEANS_OF_A_GAP = 10;

/** `not enough`: too few probes, or none for a while, to say anything. */
export type Status = 'certified' | 'revoked' | 'not enough';

/** What the monitor says of a provider over a window of time. */
export interface Certificate {
  format: 1;
  kind: 'berth-conformance-monitor';
  provider: string;
  base_url: string;
  status: Status;
  /** The rules that revoke it, or what is missing, in sentences. */
  because: string[];
  suite_version: string;
  requirements_digest: string;
  contract_version: string;
  /** RFC 3339. */
  issued_at: string;
  /** Days in UTC, `2026-01-31`: the hours of single probes would help a provider to recognise them. */
  window: { from: string; to: string; days: number };
  probes: { reads: number; machines: number; cut_short: number };
  checks: CertificateCheck[];
  latency_ms: { reads: number; p50: number; p95: number; p99: number } | null;
  answered: Share;
  reached: Share;
  stocked: Share;
  priced: Share;
  clean: Share & { not_tested?: string };
  spend: { usd: number; budget_usd_per_day: number };
  /** The latest first. */
  faults: CertificateFault[];
  more_faults: number;
  rules: readonly Rule[];
  signature?: { algorithm: 'Ed25519'; public_key: string; value: string };
}

export interface CertificateCheck {
  id: string;
  level: Requirement['level'];
  means: string;
  /** Numbers of probes. */
  pass: number;
  fail: number;
  warn: number;
}

/** `share` is null if there is nothing to share. */
export interface Share extends Tally {
  share: number | null;
}

export interface CertificateFault extends Fault {
  verdict: 'fail' | 'warn';
  /** The day, in UTC. */
  day: string;
  /** Digest of the transcript that shows it, which the marketplace keeps. */
  transcript_sha256?: string;
}

/** Computes the certificate of a provider from its probes, oldest first. `now`: milliseconds since the epoch. */
export function certificateOf(
  config: MonitorConfig,
  { name, budget_usd_per_day }: ProviderConfig,
  baseUrl: string,
  all: readonly StoredProbe[],
  now: number,
): Certificate {
  const from = now - config.window_days * MS_PER_DAY;
  const probes = all.filter(({ startedAt }) => startedAt >= from && startedAt <= now);
  const { contract, digest } = loadRequirements();
  const fired = config.rules.filter((rule) => firedBy(rule, probes, now));
  const missing = missingIn(config, probes, now);
  const status = fired.length > 0 ? 'revoked' : missing.length > 0 ? 'not enough' : 'certified';
  const faults = faultsIn(probes);
  return {
    format: 1,
    kind: 'berth-conformance-monitor',
    provider: name,
    base_url: baseUrl,
    status,
    because: status === 'revoked' ? fired.map(ruleInWords) : missing,
    suite_version: suiteVersion,
    requirements_digest: digest,
    contract_version: contract,
    issued_at: new Date(now).toISOString(),
    window: { from: dayText(probes[0]?.startedAt ?? now), to: dayText(now), days: config.window_days },
    probes: {
      reads: countOf(probes, 'read'),
      machines: countOf(probes, 'machine'),
      cut_short: probes.filter(({ summary }) => summary.end !== 'completed').length,
    },
    checks: checksIn(probes),
    latency_ms: percentilesOf(probes.flatMap(({ summary }) => summary.latenciesMs)),
    answered: shareOf(probes, 'answered'),
    reached: shareOf(probes, 'reached'),
    stocked: shareOf(probes, 'stocked'),
    priced: shareOf(probes, 'priced'),
    clean: cleanIn(probes),
    spend: {
      usd: round(probes.reduce((sum, { summary }) => sum + summary.costUsd, 0)),
      budget_usd_per_day,
    },
    faults: faults.slice(0, MOST_FAULTS),
    more_faults: Math.max(0, faults.length - MOST_FAULTS),
    rules: config.rules,
  };
}

/** The digest of a certificate without its signature, hex. */
export function certificateDigest({ signature: _, ...certificate }: Certificate): string {
  return digestOf(certificate);
}

/** What the probes are too few for, in sentences. */
function missingIn(
  { enough, reads: { mean_hours: meanHours } }: MonitorConfig,
  probes: readonly StoredProbe[],
  now: number,
): string[] {
  // Probes are in the order in which they ended, and some are long.
  const last = probes.reduce(
    (latest, { startedAt }) => Math.max(latest, startedAt),
    Number.NEGATIVE_INFINITY,
  );
  const longestGapMs = Math.max(MS_PER_DAY, MEANS_OF_A_GAP * meanHours * MS_PER_HOUR);
  const days = (now - (probes[0]?.startedAt ?? now)) / MS_PER_DAY;
  const [reads, machines] = [countOf(probes, 'read'), countWhole(probes)];
  return [
    ...(probes.length > 0 && now - last > longestGapMs ? [`the last probe was on ${dayText(last)}`] : []),
    ...(days < enough.days ? [`it was watched for ${Math.floor(days)} of ${enough.days} days`] : []),
    ...(reads < enough.reads ? [`there were ${reads} of ${enough.reads} reading probes`] : []),
    ...(machines < enough.machines
      ? [`there were ${machines} of ${enough.machines} machines that came ONLINE`]
      : []),
  ];
}

function countOf(probes: readonly StoredProbe[], of: StoredProbe['kind']): number {
  return probes.filter(({ kind }) => kind === of).length;
}

/** Machines that were logged in to at a drawn moment. */
function countWhole(probes: readonly StoredProbe[]): number {
  return probes.filter(({ kind, summary }) => kind === 'machine' && summary.reached.of > 0).length;
}

function checksIn(probes: readonly StoredProbe[]): CertificateCheck[] {
  const counts = new Map<string, Record<'pass' | 'fail' | 'warn', number>>();
  const count = (id: string, verdict: 'pass' | 'fail' | 'warn'): void => {
    const known = counts.get(id) ?? { pass: 0, fail: 0, warn: 0 };
    known[verdict]++;
    counts.set(id, known);
  };
  for (const { summary } of probes) {
    for (const id of summary.passed) count(id, 'pass');
    for (const { check } of summary.failed) count(check, 'fail');
    for (const { check } of summary.warned) count(check, 'warn');
  }
  return [...loadRequirements().rows, ...MONITOR_REQUIREMENTS].flatMap(({ id, level, means, text }) => {
    const known = counts.get(id);
    return known === undefined ? [] : [{ id, level, means: means ?? text, ...known }];
  });
}

type Shared = 'answered' | 'reached' | 'stocked' | 'priced' | 'clean';

function shareOf(probes: readonly StoredProbe[], what: Shared): Share {
  const tallies = probes.map(({ summary }) => summary[what]);
  const good = tallies.reduce((sum, tally) => sum + tally.good, 0);
  const of = tallies.reduce((sum, tally) => sum + tally.of, 0);
  return { good, of, share: of === 0 ? null : round(good / of) };
}

function cleanIn(probes: readonly StoredProbe[]): Certificate['clean'] {
  const share = shareOf(probes, 'clean');
  if (share.of > 0) return share;
  const why = probes
    .flatMap(({ summary }) => summary.notTested)
    .findLast(({ check }) => check === 'MON-REMNANT-001')?.reason;
  return { ...share, not_tested: why ?? 'no machine came ONLINE' };
}

function faultsIn(probes: readonly StoredProbe[]): CertificateFault[] {
  return probes.toReversed().flatMap(({ startedAt, summary }) => {
    const rest = {
      day: dayText(startedAt),
      ...(summary.transcriptSha256 !== undefined && { transcript_sha256: summary.transcriptSha256 }),
    };
    return [
      ...summary.failed.map((fault) => ({ verdict: 'fail' as const, ...fault, ...rest })),
      ...summary.warned.map((fault) => ({ verdict: 'warn' as const, ...fault, ...rest })),
    ];
  });
}

function dayText(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
