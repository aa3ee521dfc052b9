import type { Verdict } from '../verdict/judge.ts';
import { notAsked } from '../verdict/not-asked.ts';
import type { FeatureState, Report, ReportCheck } from './report.ts';

/** Each feature that the contract leaves to the provider or the suite to the run, and the requirements that show it. */
const FEATURES: Readonly<Record<string, readonly string[]>> = {
  volumes: ['VOL-LOC-001', 'VOL-CREATE-001'],
  'a volume that instances share': ['VOL-DETACH-003'],
  'stop an instance': ['STOP-200-001'],
  'start it again': ['START-200-001'],
  'first boot (cloud_init)': ['BOOT-FILES-001', 'BOOT-CMD-001'],
  'choice of the image': ['BOOT-IMAGE-001'],
  'API keys as credentials': ['AUTH-KEY-001'],
  'access tokens': ['TOK-200-001'],
  'tokens for a login': ['TOK-LOGIN-001'],
  'SPOT offers': ['CFG-SPOT-001'],
  'GPU offers': ['CFG-GPU-001'],
  'a second region': ['REG-BUY-001'],
  'a second API key': ['KEYS-SECOND-001'],
  'separate accounts': ['KEYS-ACCOUNT-001'],
  'no overselling': ['RACE-UNITS-001'],
  'restart without loss': ['RESTART-INS-001', 'RESTART-VOL-001'],
  'a poll every 10 s': ['INS-RATE-001'],
};

/** The worst first. */
const STATES: readonly (readonly [Verdict, FeatureState])[] = [
  ['fail', 'failed'],
  ['not_applicable', 'not supported'],
  ['not_tested', 'not tested'],
  ['not_selected', 'not asked'],
  ['not_asked', 'not asked'],
];

/** The same features for each provider, in the same order. */
export function featuresIn(checks: readonly ReportCheck[]): NonNullable<Report['features']> {
  return Object.entries(FEATURES).map(([feature, ids]) => {
    const rows = checks.filter(({ id }) => ids.includes(id));
    const [, state] = STATES.find(([verdict]) => rows.some((row) => row.verdict === verdict)) ?? [];
    return { feature, state: state ?? (rows.length === 0 ? 'not tested' : 'supported') };
  });
}

/** What the run could have tested and was not asked to, each with its option. */
export function notAskedIn({ checks, settings }: Pick<Report, 'checks' | 'settings'>): string[] {
  const run = { ...settings, pollIntervalMs: settings.poll_interval_ms };
  return [...new Set(checks.flatMap(({ capability }) => notAsked(capability, run) ?? []))];
}
