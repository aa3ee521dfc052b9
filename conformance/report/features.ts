import type { Requirement } from '../contract/requirements.ts';
import type { Verdict } from '../verdict/judge.ts';
import { notAsked } from '../verdict/not-asked.ts';
import type { FeatureState, Report } from './report.ts';

/** The worst first. */
const STATES: readonly (readonly [Verdict, FeatureState])[] = [
  ['fail', 'failed'],
  ['not_applicable', 'not supported'],
  ['not_tested', 'not tested'],
  // A check that only warns says nothing for certain.
  ['warn', 'not tested'],
  ['not_selected', 'not asked'],
  ['not_asked', 'not asked'],
];

/** The features that requirements.yaml names, the same for each provider and in the same order. */
export function featuresIn(
  rows: readonly { requirement: Pick<Requirement, 'feature'> | undefined; verdict: Verdict }[],
): NonNullable<Report['features']> {
  const features = Map.groupBy(rows, ({ requirement }) => requirement?.feature);
  return [...features].flatMap(([feature, of]) => {
    const [, state = 'supported'] =
      STATES.find(([worst]) => of.some(({ verdict }) => verdict === worst)) ?? [];
    return feature === undefined ? [] : [{ feature, state }];
  });
}

/** What the run could have tested and was not asked to, each with its option. */
export function notAskedIn({ checks, settings }: Pick<Report, 'checks' | 'settings'>): string[] {
  const run = { ...settings, pollIntervalMs: settings.poll_interval_ms };
  return [...new Set(checks.flatMap(({ capability }) => notAsked(capability, run) ?? []))];
}
