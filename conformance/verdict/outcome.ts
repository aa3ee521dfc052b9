import type { EndRecord, ResourceRecord, RunRecord } from '../transcript/records.ts';
import type { Judged, Verdict } from './judge.ts';

export type Outcome = 'CONFORMANT' | 'NON-CONFORMANT' | 'INCOMPLETE';

/** The exit codes of the command. The last one overrides all others. */
export const EXIT = {
  conformant: 0,
  nonConformant: 1,
  incomplete: 2,
  configuration: 3,
  suiteFault: 4,
  mayBeRunning: 5,
} as const;

/** The number of requirements with each verdict. Older reports do not have `not_asked`, so it is absent if there is none. */
export type Counts = Readonly<Record<Exclude<Verdict, 'not_asked'>, number> & { not_asked?: number }>;

export function countVerdicts(judged: readonly Pick<Judged, 'verdict'>[]): Counts {
  const counts: Record<Exclude<Verdict, 'not_asked'>, number> & { not_asked?: number } = {
    pass: 0,
    fail: 0,
    warn: 0,
    not_applicable: 0,
    not_tested: 0,
    not_selected: 0,
    excluded: 0,
  };
  for (const { verdict } of judged) counts[verdict] = (counts[verdict] ?? 0) + 1;
  return counts;
}

/**
 * The outcome of a run. Any failure is NON-CONFORMANT. CONFORMANT requires that the run was complete, that every
 * check of its level was made, and that at least one passed; a run with `--only` is never CONFORMANT.
 */
export function outcomeOf(
  run: Pick<RunRecord, 'only'>,
  end: Pick<EndRecord, 'reason'> | undefined,
  counts: Counts,
): Outcome {
  if (counts.fail > 0) return 'NON-CONFORMANT';
  const isWhole = run.only === undefined && end?.reason === 'completed';
  return isWhole && counts.not_tested === 0 && counts.pass > 0 ? 'CONFORMANT' : 'INCOMPLETE';
}

/** Resources that may still exist and be billed. */
export function leftovers(resources: readonly ResourceRecord[]): ResourceRecord[] {
  return resources.filter(({ state }) => state === 'made' || state === 'unknown');
}

export function exitCodeOf(
  outcome: Outcome,
  end: Pick<EndRecord, 'reason'> | undefined,
  left: readonly unknown[],
): number {
  if (left.length > 0) return EXIT.mayBeRunning;
  if (end?.reason === 'fault of the suite') return EXIT.suiteFault;
  if (end?.reason === 'ledger not written' || end?.reason === 'target lost') return EXIT.configuration;
  if (outcome === 'CONFORMANT') return EXIT.conformant;
  return outcome === 'NON-CONFORMANT' ? EXIT.nonConformant : EXIT.incomplete;
}
